import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settingsSchema } from '../../src/config/schema/index.ts';
import { type LeasePeer, type LeaseService, leaseService } from '../../src/control/leases/service.ts';
import type { Fact } from '../../src/events/contracts.ts';
import { type ControlLink, openControlLink } from '../../src/gateway/control-link.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import type { Link } from '../../src/links/link.ts';
import { type Listener, listen } from '../../src/links/listen.ts';
import type { ControlToGateway, GatewayToControl, Snapshot } from '../../src/links/messages.ts';
import { socketPath } from '../../src/links/socket-path.ts';
import { eventually } from '../upstream/waiting.ts';

/** A worker's link with a control that keeps what it hears and can be killed. */

const timing = { clock: systemClock, timers: systemTimers, random: systemRandom };
const KEY = 'b|http://a';

class MadeUpControl {
  readonly listener: Listener;
  readonly leases: LeaseService;
  readonly stored = new Map<number, Fact[]>();
  batches = 0;
  storing = true;
  links: Link<GatewayToControl, ControlToGateway>[] = [];
  replies: unknown[] = [];

  static async start(folder: string, workers: number): Promise<MadeUpControl> {
    const leases = leaseService({ timers: systemTimers, workers: () => workers });
    let made: MadeUpControl | undefined;
    const listener = await listen<GatewayToControl, ControlToGateway>(socketPath(folder, 'control'), {
      onConnect: (link) => made!.#accept(link),
    });
    made = new MadeUpControl(listener, leases);
    return made;
  }

  private constructor(listener: Listener, leases: LeaseService) {
    this.listener = listener;
    this.leases = leases;
  }

  async die(): Promise<void> {
    this.leases.close();
    await this.listener.close();
  }

  #accept(link: Link<GatewayToControl, ControlToGateway>): void {
    let peer: LeasePeer | undefined;
    this.links.push(link);
    link.onMessage = (message) => {
      if (message.type === 'hello') {
        peer = {
          boot: message.boot,
          worker: message.worker,
          pid: message.pid,
          send: (out) => link.send(out),
        };
        this.leases.joined(peer, message.holdings);
      } else if (message.type === 'facts') {
        this.batches++;
        if (!this.storing) return;
        this.stored.set(message.sequence, message.facts);
        link.send({ type: 'facts-stored', boot: message.boot, sequence: message.sequence });
      } else if (message.type === 'reply') this.replies.push(message.data);
      else if (
        message.type === 'lease-ask' ||
        message.type === 'lease-return' ||
        message.type === 'lease-forget'
      )
        this.leases.heard(peer!, message);
    };
    link.onClose = () => peer && this.leases.left(peer);
  }
}

let folder: string;
let control: MadeUpControl;
const links: ControlLink[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'control-link-'));
});

afterEach(async () => {
  await Promise.all(links.splice(0).map((link) => link.close(0)));
  await control.die();
  rmSync(folder, { recursive: true, force: true });
});

function worker(index: number, callbacks: Partial<Parameters<typeof openControlLink>[0]['callbacks']> = {}) {
  const link = openControlLink({
    dataDir: folder,
    worker: index,
    boot: `boot-${index}`,
    ...timing,
    callbacks: { onSnapshot: () => {}, onReadings: () => {}, onAsk: () => ({}), ...callbacks },
  });
  links.push(link);
  return link;
}

const fact = (count: number): Fact => ({
  kind: 'group',
  second: count,
  route: 'chat',
  tenant: 'web',
  reason: 'ok',
  count: 1,
  example: '',
});

test('facts that wait while control is dead are stored once it is back, each once', async () => {
  control = await MadeUpControl.start(folder, 1);
  const { facts } = worker(0);
  for (let i = 0; i < 100; i++) facts.push(fact(i));
  await eventually('they are stored', () => facts.waiting === 0);
  control.storing = false;
  for (let i = 100; i < 1000; i++) facts.push(fact(i));
  await eventually('they are on their way', () => control.batches > control.stored.size);
  const { stored } = control;
  await control.die();
  for (let i = 1000; i < 2000; i++) facts.push(fact(i));
  expect(facts.waiting).toBe(1900);
  control = await MadeUpControl.start(folder, 1);
  await eventually('they are stored', () => facts.waiting === 0);
  const seconds = [...stored, ...control.stored]
    .sort(([a], [b]) => a - b)
    .flatMap(([, batch]) => batch.map((one) => (one.kind === 'group' ? one.second : -1)));
  expect(seconds).toEqual(Array.from({ length: 2000 }, (_, i) => i));
});

test('a control that starts anew learns what workers hold before it grants more', async () => {
  control = await MadeUpControl.start(folder, 2);
  const [a, b] = [worker(0), worker(1)];
  for (const { leases } of [a, b]) leases.declare(KEY, 10);
  await eventually('all is held', () => a.leases.held(KEY) + b.leases.held(KEY) === 10);
  while (a.leases.take(KEY, 1));
  await control.die();
  control = await MadeUpControl.start(folder, 2);
  await eventually('both are back', () => a.up && b.up);
  await eventually('what nobody used was called back', () => {
    while (a.leases.take(KEY, 1));
    expect(a.leases.held(KEY) + b.leases.held(KEY)).toBeLessThanOrEqual(10);
    return a.leases.used(KEY) === 10;
  });
  a.leases.give(KEY);
  await eventually('a unit that came free was found', () => b.leases.take(KEY, 1));
});

test('snapshots, readings and asks come through, and set the bounds of the outbox', async () => {
  control = await MadeUpControl.start(folder, 1);
  const snapshots: Snapshot[] = [];
  const readings: unknown[] = [];
  const link = worker(0, {
    onSnapshot: (snapshot) => snapshots.push(snapshot),
    onReadings: (read) => readings.push(read),
    onAsk: async (what) => `${what}!`,
  });
  await eventually('it is there', () => control.links[0]);
  const settings = settingsSchema.parse({ gateway: { factsMax: 123, recordsPerSecondMax: 45 } });
  const snapshot: Snapshot = { number: 7, event: 'ev', settings, keys: [], endpoints: {} };
  control.links[0]!.send({ type: 'snapshot', snapshot });
  control.links[0]!.send({ type: 'readings', readings: { health: { [KEY]: 'well' } } });
  control.links[0]!.send({ type: 'ask', ask: 1, what: 'state' });
  await eventually('it has answered', () => control.replies.length > 0);
  expect([snapshots, readings, control.replies]).toEqual([
    [snapshot],
    [{ health: { [KEY]: 'well' } }],
    ['state!'],
  ]);
  expect(link.facts.limits).toEqual({ factsMax: 123, recordsPerSecondMax: 45 });
});

test('closing waits for facts to be stored, but not for ever', async () => {
  control = await MadeUpControl.start(folder, 1);
  const first = worker(0);
  await eventually('it is up', () => first.up);
  first.facts.push(fact(1));
  expect(await first.close(5000)).toBe(0);
  expect(control.stored.size).toBe(1);
  control.storing = false;
  const second = worker(1);
  second.facts.push(fact(2));
  expect(await second.close(50)).toBe(1);
});
