import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import type { Clock } from '../kernel/clock.ts';
import { type Priority, priorities } from '../kernel/priorities.ts';
import type { Random } from '../kernel/random.ts';
import { pause, type Timers } from '../kernel/timers.ts';
import type { Snapshot, WorkerState } from '../links/messages.ts';
import type { Preprocessing } from '../pipelines/contracts.ts';
import type { GaugeReadings } from '../telemetry/metrics.ts';
import { assembleGateway } from './assemble.ts';
import type { BufferBudget } from './buffer-budget.ts';
import type { StatefulEndpoints } from './contracts.ts';
import { type ControlLink, openControlLink } from './control-link.ts';
import { Listener } from './listener/index.ts';
import type { Path } from './path.ts';
import { isReady } from './readiness.ts';
import type { EvidenceGatherer } from './release/evidence.ts';
import type { World } from './state/world.ts';
import { openHttp1 } from './transport/http1/index.ts';

export interface WorkerOptions {
  /** The endpoints whose meaning is stored state. */
  stateful: StatefulEndpoints;
  /** What makes tokens of texts. */
  preprocessing: Preprocessing;
  dataDir: string;
  worker: number;
  boot: string;
  version: string;
  clock: Clock;
  random: Random;
  timers: Timers;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** The port is taken, or its certificate cannot be read. */
  onFatal: (error: Error) => void;
}

/** How long answers that end a drain may take to leave, milliseconds. */
const LAST_BYTES_MS = 500;
/** How often the lag of the event loop is looked at, milliseconds. */
const LOOP_SAMPLE_MS = 10;

/** One gateway process: the path, its listener, and its link with control. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #link: ControlLink;
  readonly #world: World;
  readonly #path: Path;
  readonly #buffers: BufferBudget;
  readonly #evidence: EvidenceGatherer;
  readonly #registry = new Registry();
  #listener: Listener | undefined;
  #unready = false;
  #hurried = false;
  #stopLoopSampling: (() => void) | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { clock, random, timers } = options;
    this.#link = openControlLink({
      dataDir: options.dataDir,
      worker: options.worker,
      boot: options.boot,
      clock,
      timers,
      random,
      callbacks: {
        onSnapshot: (snapshot) => this.#swap(snapshot),
        onReadings: (readings) => this.#world.read(readings),
        onAsk: (what) => (what === 'metrics' ? this.#registry.getMetricsAsJSON() : this.#state()),
        onFault: (fault) => options.log.warn({ err: fault }, 'the link with control broke'),
      },
    });
    const { leases, rates, facts, observations } = this.#link;
    const { world, path, buffers, metrics, evidence } = assembleGateway({
      worker: options.worker,
      clock,
      random,
      timers,
      leases,
      rates,
      facts,
      observations,
      openTransport: openHttp1,
      registry: this.#registry,
      gauges: () => this.#gauges(),
      version: options.version,
      tokenizers: options.preprocessing,
      stateful: options.stateful,
    });
    world.onWake = (backend, cause) => this.#link.wake(backend, cause);
    this.#world = world;
    this.#evidence = evidence;
    this.#path = path;
    this.#buffers = buffers;
    this.#stopLoopSampling = sampleLoop(clock, timers, (seconds) =>
      metrics.loopDelaySeconds.observe(seconds),
    );
  }

  /**
   * Unready at once; requests are still taken for `drainDelay`, then refused as draining; running ones may finish until
   * `drain`, the rest end with an error that may be retried. Resolves when what is recorded is stored.
   */
  async drain(): Promise<void> {
    if (this.#unready) return;
    this.#unready = this.#path.unready = true;
    this.#options.stateful.drain();
    const { log } = this.#options;
    const { drain = 0, drainDelay = 0 } = this.#world.snapshot?.settings.gateway ?? {};
    log.info({ running: this.#path.running.size, drainMs: drain, drainDelayMs: drainDelay }, 'draining');
    await this.#while(() => true, drainDelay);
    this.#path.draining = true;
    this.#listener?.stop();
    await this.#while(() => this.#busy, drain);
    this.#path.endAll();
    this.#listener?.refuseUnread();
    await this.#until(() => !this.#busy);
    this.#listener?.end();
    await this.#until(() => this.#listener?.connections === 0);
    this.#listener?.destroy();
    await this.#options.stateful.close();
    this.#world.close();
    this.#options.preprocessing.close();
    this.#stopLoopSampling?.();
    this.#evidence.flush();
    const left = await this.#link.close(2_000);
    if (left > 0) log.warn({ facts: left }, 'facts could not be stored');
  }

  /** Requests run, bodies are coming, or answers are still leaving. */
  get #busy(): boolean {
    return this.#path.running.size > 0 || (this.#listener?.open ?? 0) > 0;
  }

  /** Resolves when it holds, or when the last bytes have had their time. */
  async #until(holds: () => boolean): Promise<void> {
    const { clock, timers } = this.#options;
    const end = clock.mono() + LAST_BYTES_MS;
    while (!holds() && clock.mono() < end) await pause(timers, 5);
  }

  /** A drain goes on without waiting: what runs ends now, with an error that may be retried. */
  hurry(): void {
    this.#hurried = true;
    this.#path.draining = true;
    this.#path.endAll();
  }

  /** Resolves when it does not go on any more, after `withinMs`, or when somebody is in a hurry. */
  async #while(goesOn: () => boolean, withinMs: number): Promise<void> {
    const { clock, timers } = this.#options;
    const end = clock.mono() + withinMs;
    for (let now = clock.mono(); now < end && !this.#hurried && goesOn(); now = clock.mono())
      await pause(timers, Math.min(25, end - now));
  }

  #swap(snapshot: Snapshot): void {
    const { gateway } = snapshot.settings;
    this.#buffers.bytesMax = gateway.bufferBytesMax;
    this.#options.preprocessing.swap(snapshot.settings);
    this.#world.swap(snapshot);
    this.#options.log.info({ snapshot: snapshot.number }, 'snapshot loaded');
    if (this.#listener) this.#renew(this.#listener, gateway.tls);
    if (this.#listener || this.#unready) return;
    try {
      this.#listener = this.#open(snapshot);
    } catch (error) {
      this.#options.onFatal(error as Error);
      return;
    }
    this.#listener.listen().catch((error: Error) => this.#options.onFatal(error));
  }

  /** The certificate may have been renewed; one that cannot be used changes nothing. */
  #renew(listener: Listener, tls: Tls): void {
    try {
      listener.renew(readPair(tls));
    } catch (error) {
      this.#options.log.warn({ err: error }, 'the certificate cannot be used; the one before it stays');
    }
  }

  #open(snapshot: Snapshot): Listener {
    const { gateway } = snapshot.settings;
    return new Listener({
      listen: gateway.listen,
      tls: readPair(gateway.tls),
      path: this.#path,
      timers: this.#options.timers,
      buffers: this.#buffers,
      bodyBytesMax: () => this.#world.snapshot!.settings.gateway.bodyBytesMax,
      guarded: () => this.#world.tenants !== undefined,
      ready: (route) => this.#ready(route),
    });
  }

  /** undefined: no such route. */
  #ready(route: string | undefined): boolean | undefined {
    if (this.#unready || !this.#world.snapshot) return false;
    if (route === undefined) return true;
    return isReady(this.#world, route, this.#options.clock.mono());
  }

  #gauges(): GaugeReadings {
    const queued = Object.fromEntries(priorities.map((priority) => [priority, 0])) as Record<
      Priority,
      number
    >;
    for (const { line } of this.#world.backends.values()) {
      priorities.forEach((priority, rank) => {
        queued[priority] += line.waitingAt(rank);
      });
    }
    const now = this.#options.clock.mono();
    const names = [...this.#world.routes.keys(), ...this.#world.pipelines.keys()];
    return {
      endpoints: [...this.#world.endpoints.values()].map((endpoint) => ({
        backend: endpoint.backend,
        endpoint: endpoint.address,
        inflight: endpoint.inflight,
        limit: endpoint.limit,
        breaker: endpoint.breaker.state,
      })),
      queued,
      routes: names.flatMap((route) => {
        const ready = isReady(this.#world, route, now);
        return ready === undefined ? [] : { route, ready };
      }),
      factsWaiting: this.#link.facts.waiting,
      textsWaiting: this.#options.preprocessing.pool.waiting,
      batches: this.#options.stateful.batches,
    };
  }

  /** Endpoints count that no snapshot names any more, as long as a request runs there. */
  #hostUse(now: number): WorkerState['hosts'] {
    const endpoints = [...this.#world.endpoints.values()];
    return [...this.#world.backends.values()].flatMap(({ name, host, line }) => {
      if (!host) return [];
      const inflight = endpoints.reduce(
        (sum, each) => (each.backend === name ? sum + each.inflight : sum),
        0,
      );
      return [{ backend: name, inflight: inflight + line.length, idleMs: Math.round(now - host.usedAt) }];
    });
  }

  #state(): WorkerState {
    const now = this.#options.clock.mono();
    const quotas = this.#world.quotas.state;
    return {
      worker: this.#options.worker,
      pid: process.pid,
      snapshot: this.#world.snapshot?.number ?? 0,
      draining: this.#unready,
      inflight: this.#path.running.size,
      factsWaiting: this.#link.facts.waiting,
      routes: [...this.#world.routes.values(), ...this.#world.pipelines.values()].map((route) => ({
        route: route.name,
        ready: isReady(this.#world, route.name, now) === true,
        waiting: route.waiting.count,
      })),
      ...(quotas && { quotas }),
      hosts: this.#hostUse(now),
      endpoints: [...this.#world.endpoints.values()].map((endpoint) => {
        const waitMs = endpoint.waitMs(now);
        return {
          backend: endpoint.backend,
          endpoint: endpoint.address,
          inflight: endpoint.inflight,
          limit: endpoint.limit,
          state: endpoint.state(now),
          ...(waitMs > 0 && Number.isFinite(waitMs) ? { forMs: Math.round(waitMs) } : {}),
        };
      }),
    };
  }
}

type Tls = Snapshot['settings']['gateway']['tls'];

/** PEM texts out of their files. */
function readPair(tls: Tls): { cert: string; key: string } | undefined {
  return tls && { cert: readFileSync(tls.cert, 'utf8'), key: readFileSync(tls.key, 'utf8') };
}

/** Observes how late the event loop runs, beyond the sampling interval, in seconds; gives back what stops it. */
function sampleLoop(clock: Clock, timers: Timers, observe: (seconds: number) => void): () => void {
  let last = clock.mono();
  let timer = timers.set(LOOP_SAMPLE_MS, tick);
  function tick(): void {
    const now = clock.mono();
    observe(Math.max(0, now - last - LOOP_SAMPLE_MS) / 1000);
    last = now;
    timer = timers.set(LOOP_SAMPLE_MS, tick);
  }
  return () => timers.clear(timer);
}
