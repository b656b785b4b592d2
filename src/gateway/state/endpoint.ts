import { hash32 } from '../../kernel/hash.ts';
import type { Random } from '../../kernel/random.ts';
import type { GaugeReading } from '../../links/messages.ts';
import { Breaker, type BreakerObservation } from '../../policies/breaker/index.ts';
import type { Leases, ServedSample, Transport } from '../contracts.ts';
import { EngineGauge } from './engine-gauge.ts';

/** The longest that an engine's `retry-after` is believed. */
const COOL_MS_MAX = 300_000;

/** What this worker knows of one address of a backend. It survives a snapshot that still names it. */
export class Endpoint {
  /** `BACKEND|ADDRESS` */
  readonly key: string;
  /** Of the key; never 0. */
  readonly hash: number;
  readonly backend: string;
  readonly address: string;
  /** Path of the address, without a trailing slash: what the paths of calls are put behind. */
  readonly basePath: string;
  transport: Transport;
  /** What the transport was opened with, so that a change is seen. */
  opened: string;
  readonly breaker: Breaker;
  readonly #leases: Leases;
  /** Set by control's probes; passive health stands beside it. */
  unwell = false;
  /** The end of the later of its cool-downs. */
  coolUntil = 0;
  /** The snapshot no longer names it: it ends with its last request. */
  retired = false;
  /** Reckoned tokens of the requests that this worker has at it. */
  tokensInFlight = 0;
  /** What the engine tells of its own load, where it was ever read. */
  gauge: EngineGauge | undefined;
  /** The events that fenced it, for the records of requests that meet it so. */
  cause: string | undefined;

  constructor(
    backend: string,
    address: string,
    opened: string,
    transport: Transport,
    leases: Leases,
    random: Random,
  ) {
    this.opened = opened;
    this.backend = backend;
    this.address = address;
    this.key = endpointKey(backend, address);
    this.hash = hash32(this.key) || 1;
    this.basePath = new URL(address).pathname.replace(/\/+$/, '');
    this.transport = transport;
    this.breaker = new Breaker(random);
    this.#leases = leases;
  }

  get inflight(): number {
    return this.#leases.used(this.key);
  }

  /** Units that this worker holds: how many requests it may have here at once. */
  get limit(): number {
    return this.#leases.held(this.key);
  }

  get hasRoom(): boolean {
    return this.inflight < this.limit;
  }

  /**
   * Takes a place for a request that is reckoned at `tokens`; false where there is none. `waiting` is how many wait for one,
   * this one included.
   */
  take(tokens: number, waiting: number): boolean {
    if (!this.#leases.take(this.key, waiting)) return false;
    this.tokensInFlight += tokens;
    this.gauge?.sent(this.inflight);
    return true;
  }

  /** Gives the place back. */
  give(tokens: number): void {
    this.tokensInFlight -= tokens;
    this.#leases.give(this.key);
  }

  /** The engine's own load was read anew. */
  gauged(reading: GaugeReading, now: number): void {
    this.gauge ??= new EngineGauge();
    this.gauge.read(reading, this.inflight, now);
  }

  /** An attempt was answered whole: what it took. */
  served(_sample: ServedSample, _now: number): void {}

  /** Milliseconds until it may be used; 0 when it may now, Infinity when nobody knows. */
  waitMs(now: number): number {
    if (this.unwell || this.retired) return Number.POSITIVE_INFINITY;
    const coolMs = this.coolUntil - now;
    const breakerMs = this.breaker.waitMs(now);
    return Math.max(coolMs, breakerMs);
  }

  /** The engine asked to be left alone; of two such wishes the later end counts. */
  cool(ms: number, now: number): void {
    this.coolUntil = Math.max(this.coolUntil, now + Math.min(ms, COOL_MS_MAX));
  }

  observe(observation: BreakerObservation, now: number): void {
    this.breaker.observe(observation, now);
  }

  state(now: number): 'well' | 'cooling' | 'open' | 'half-open' | 'unwell' {
    if (this.unwell) return 'unwell';
    if (this.breaker.state !== 'closed') return this.breaker.state;
    return this.coolUntil > now ? 'cooling' : 'well';
  }
}

export function endpointKey(backend: string, address: string): string {
  return `${backend}|${address}`;
}
