import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import { connect } from '../links/connect.ts';
import type { ControlToGateway, GatewayToControl, Readings, Snapshot } from '../links/messages.ts';
import { socketPath } from '../links/socket-path.ts';
import type { Leases } from './contracts.ts';
import { Observations } from './drift/observations.ts';
import { Outbox } from './facts/outbox.ts';
import { ControlLeases } from './leases/leased.ts';
import { Rates } from './quota/rates.ts';

export interface ControlLinkOptions {
  dataDir: string;
  worker: number;
  /** Drawn anew by each process. */
  boot: string;
  clock: Clock;
  timers: Timers;
  random: Random;
  callbacks: {
    onSnapshot: (snapshot: Snapshot) => void;
    onReadings: (readings: Readings) => void;
    /** What control asks for: `metrics` or `state`. */
    onAsk: (what: 'metrics' | 'state') => unknown;
    /** The connection ended in this fault; it is made anew. */
    onFault?: (fault: Error) => void;
  };
}

export interface ControlLink {
  /** Where facts go; `waiting` is the gauge `armature_facts_waiting`. */
  facts: Outbox;
  observations: Observations;
  leases: Leases;
  rates: Rates;
  readonly up: boolean;
  /** Asks for a host that is idle. Lost where control is away: it tells of idle hosts when it is back, and is asked again. */
  wake(backend: string, cause: string): void;
  /** Waits up to `withinMs` for facts to be stored, then ends the link. Resolves with the number of facts left over. */
  close(withinMs: number): Promise<number>;
}

/** A worker's side of its link with control: snapshots and readings in, facts out, units of limits both ways. */
export function openControlLink(options: ControlLinkOptions): ControlLink {
  const { callbacks, clock, timers, random, boot, worker } = options;
  const soon = (run: () => void) => void setImmediate(run);
  const send = (message: GatewayToControl) => connection.send(message);
  const facts = new Outbox({ boot, send, soon, clock, timers, random });
  const observations = new Observations(send, timers);
  const leases = new ControlLeases({ send, soon });
  const rates = new Rates({ clock, timers, link: { send, soon } });

  const connection = connect<ControlToGateway, GatewayToControl>(socketPath(options.dataDir, 'control'), {
    hello: () => ({
      type: 'hello',
      role: 'gateway',
      part: `gateway-${worker}`,
      pid: process.pid,
      boot,
      worker,
      holdings: leases.holdings(),
    }),
    onMessage: (message) => hear(message, options, { facts, leases, rates }, send),
    onUp() {
      leases.up();
      rates.up();
      facts.up();
    },
    onDown(fault) {
      rates.down();
      if (fault) callbacks.onFault?.(fault);
    },
    timers,
    random,
  });

  async function leave(): Promise<void> {
    facts.flushGroups();
    observations.flush();
    send({ type: 'parting', metrics: await callbacks.onAsk('metrics') });
    if (facts.waiting > 0) await new Promise<void>((resolve) => (facts.onEmpty = resolve));
    await connection.close();
  }

  return {
    facts,
    observations,
    leases,
    rates,
    get up() {
      return connection.up;
    },
    wake: (backend, cause) => void send({ type: 'wake', backend, cause }),
    close: (withinMs) => orAfter(withinMs, leave(), timers).then(() => facts.waiting),
  };
}

/** Waits for something, but no longer than so many milliseconds. */
async function orAfter(ms: number, work: Promise<void>, timers: Timers): Promise<void> {
  let late: TimerHandle;
  await Promise.race([work, new Promise<void>((resolve) => (late = timers.set(ms, resolve)))]);
  timers.clear(late);
}

/** Hands what control says to whom it concerns. */
function hear(
  message: ControlToGateway,
  { boot, callbacks }: ControlLinkOptions,
  { facts, leases, rates }: { facts: Outbox; leases: ControlLeases; rates: Rates },
  send: (message: GatewayToControl) => boolean,
): void {
  switch (message.type) {
    case 'snapshot': {
      const { factsMax, recordsPerSecondMax } = message.snapshot.settings.gateway;
      facts.limits = { factsMax, recordsPerSecondMax };
      callbacks.onSnapshot(message.snapshot);
      break;
    }
    case 'readings':
      callbacks.onReadings(message.readings);
      break;
    case 'facts-stored':
      if (message.boot === boot) facts.stored(message.sequence);
      break;
    case 'lease-grant':
    case 'lease-recall':
      leases.heard(message);
      break;
    case 'quota-answer':
    case 'quota-level':
      rates.heard(message);
      break;
    case 'ask': {
      const { ask, what } = message;
      // Whatever the answer is made of may fail, at once or later, without harm to the link.
      Promise.resolve(what)
        .then(callbacks.onAsk)
        .then((data) => send({ type: 'reply', ask, data }))
        .catch((error: Error) => callbacks.onFault?.(error));
    }
  }
}
