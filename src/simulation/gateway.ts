import { createHash } from 'node:crypto';
import { Registry } from 'prom-client';
import type { Settings } from '../config/schema/index.ts';
import type { Fact, RequestRecord } from '../events/contracts.ts';
import { assembleGateway, type Gateway } from '../gateway/assemble.ts';
import type { EndedRequest } from '../gateway/contracts.ts';
import { soleLeases } from '../gateway/leases/sole.ts';
import { type Random, seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { GaugeReading, Snapshot } from '../links/messages.ts';
import type { AcceleratorProfile } from './accelerator/step.ts';
import { requestBody } from './bodies.ts';
import { SimulatedCaller } from './caller.ts';
import type { Arrival } from './contracts.ts';
import { SimulatedEngine } from './engine.ts';

export interface SimulatedGatewayOptions {
  settings: Settings;
  /** By backend; those with `engine: sim` need none. */
  profiles?: ReadonlyMap<string, AcceleratorProfile>;
  seed: number;
  onAnswered?: (caller: SimulatedCaller) => void;
  onRecord?: (record: RequestRecord) => void;
  /** Whether engines tell of their load, as control would read it. Default: true. */
  gauges?: boolean;
  /** Which requests get a full record. Default: those that were not answered in full. */
  wantsRecord?: (ended: EndedRequest) => boolean;
}

/** How often control reads what engines tell of their load. */
const GAUGES_MS = 1000;

/** What an engine that nobody gave a profile is simulated as: the defaults of `engine: sim`. */
const USUAL_PROFILE: AcceleratorProfile = {
  prefillTokensPerSecond: 8000,
  decodeTokensPerSecond: 60,
  batchMax: 32,
  kvTokensMax: 100_000,
  coldStart: 0,
  jitter: 0,
  faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
};

/**
 * A gateway worker in virtual time, whole: the same path, world and policies as live, with simulated engines behind it. It
 * is one worker, whatever `gateway.workers` says.
 */
export class SimulatedGateway {
  readonly time = new VirtualTime();
  readonly registry = new Registry();
  readonly gateway: Gateway;
  /** By origin, such as `http://10.0.0.5:8000`. */
  readonly engines = new Map<string, SimulatedEngine>();
  readonly leases = soleLeases();
  readonly #options: SimulatedGatewayOptions;
  readonly #engineChance: Random;
  #settings: Settings;
  #snapshots = 0;
  #serial = 0;

  constructor(options: SimulatedGatewayOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#engineChance = seededRandom(options.seed ^ 0x5eed);
    const { time, registry, leases } = this;
    this.gateway = assembleGateway({
      promptsAreLengths: true,
      clock: time,
      random: seededRandom(options.seed),
      timers: time,
      leases,
      facts: {
        push: (fact: Fact) => {
          if (fact.kind === 'request') options.onRecord?.(fact.record);
        },
        wantsRecord: options.wantsRecord ?? ((ended) => ended.reason !== 'ok'),
        waiting: 0,
      },
      openTransport: (origin) => this.#engineAt(origin),
      registry,
      version: 'simulated',
    });
    this.load(options.settings);
    if (options.gauges !== false) this.#readGauges();
  }

  /** Swaps the settings in, as a new snapshot does. */
  load(settings: Settings): void {
    this.#settings = { ...settings, gateway: { ...settings.gateway, workers: 1 } };
    const number = ++this.#snapshots;
    const snapshot: Snapshot = {
      number,
      event: `ev_${number}`,
      settings: this.#settings,
      keys: Object.keys(settings.tenants ?? {}).map((tenant) => ({
        id: tenant,
        tenant,
        hash: `sha256:${createHash('sha256').update(keyOf(tenant)).digest('hex')}`,
      })),
      endpoints: Object.fromEntries(
        Object.entries(settings.backends).map(([name, backend]) => [
          name,
          'endpoints' in backend ? backend.endpoints : [`http://${name}.simulated/v1`],
        ]),
      ),
    };
    this.gateway.buffers.bytesMax = settings.gateway.bufferBytesMax;
    this.gateway.world.swap(snapshot);
  }

  /** A request comes now. */
  send(arrival: Arrival): SimulatedCaller {
    const { tenants } = this.#settings;
    const tenant = tenants && (arrival.tenant ?? Object.keys(tenants)[0]);
    const serial = this.#serial++;
    const caller = new SimulatedCaller(
      arrival,
      requestBody(arrival, serial),
      `sim-${serial}`,
      tenant === undefined ? undefined : `Bearer ${keyOf(tenant)}`,
      this.time,
      (answered) => this.#options.onAnswered?.(answered),
    );
    this.gateway.path.handle(caller);
    if (arrival.leavesAfterMs !== undefined && caller.ended === 0) {
      this.time.set(arrival.leavesAfterMs, () => caller.leave());
    }
    return caller;
  }

  /** Engines of a backend, in the order of its endpoints. */
  enginesOf(backend: string): SimulatedEngine[] {
    const endpoints = this.gateway.world.backends.get(backend)?.endpoints ?? [];
    return endpoints.map(({ address }) => this.#engineAt(new URL(address).origin));
  }

  /** Timers that are set, the simulation's own left out. */
  get timers(): number {
    return this.time.pending - (this.#options.gauges === false ? 0 : 1);
  }

  /** What is taken now: all zero when nothing is asked. */
  get taken(): Record<
    'running' | 'slots' | 'quotaSlots' | 'tokens' | 'waiting' | 'bytes' | 'atEngines',
    number
  > {
    const { world, path, buffers } = this.gateway;
    let quotaSlots = 0;
    for (const used of Object.values(world.quotas.state?.slots ?? {})) quotaSlots += used;
    let waiting = 0;
    for (const backend of world.backends.values()) waiting += backend.line.length;
    let slots = 0;
    let tokens = 0;
    for (const endpoint of world.endpoints.values()) {
      slots += endpoint.inflight;
      tokens += endpoint.tokensInFlight;
    }
    let atEngines = 0;
    for (const engine of this.engines.values()) atEngines += engine.inflight;
    return { running: path.running.size, slots, quotaSlots, tokens, waiting, bytes: buffers.held, atEngines };
  }

  /** Control's part: the gauges of engines that have some, once a second. */
  #readGauges(): void {
    this.time.set(GAUGES_MS, () => {
      const gauges: Record<string, GaugeReading> = {};
      for (const { settings, dialect, endpoints } of this.gateway.world.backends.values()) {
        if (!('gauges' in settings && settings.gauges) && dialect.gaugesPath === undefined) continue;
        for (const { key, address } of endpoints) {
          const reading = this.#engineAt(new URL(address).origin).gauges();
          if (reading) gauges[key] = reading;
        }
      }
      this.gateway.world.read({ gauges });
      this.#readGauges();
    });
  }

  #engineAt(origin: string): SimulatedEngine {
    let engine = this.engines.get(origin);
    if (!engine) {
      engine = new SimulatedEngine(this.#profileAt(origin), this.time, this.#engineChance);
      this.engines.set(origin, engine);
    }
    return engine;
  }

  #profileAt(origin: string): AcceleratorProfile {
    for (const [name, backend] of Object.entries(this.#settings.backends)) {
      const here =
        'endpoints' in backend
          ? backend.endpoints.some((address) => new URL(address).origin === origin)
          : origin === `http://${name}.simulated`;
      if (!here) continue;
      const given = this.#options.profiles?.get(name);
      if (given) return given;
      if (backend.engine === 'sim') return { ...backend.profile, coldStart: 0 };
    }
    return USUAL_PROFILE;
  }
}

function keyOf(tenant: string): string {
  return `simulated-${tenant}`;
}
