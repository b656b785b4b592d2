import type { BackendSettings } from '../../config/schema/index.ts';
import { hash32 } from '../../kernel/hash.ts';
import type { Random } from '../../kernel/random.ts';
import type { GaugeReading } from '../../links/messages.ts';
import { Breaker, type BreakerObservation } from '../../policies/breaker/index.ts';
import { PeakEwma } from '../../policies/peak-ewma/index.ts';
import type { Leases, ServedSample, Transport } from '../contracts.ts';
import { AdaptiveLimit, type Sent } from './adaptive-limit.ts';
import { EngineGauge } from './engine-gauge.ts';

/** The longest that an engine's `retry-after` is believed. */
const COOL_MS_MAX = 300_000;
/** Whole answers are compared as if each had had so many tokens; the first one takes as long as so many of the others. */
const COMPARED_TOKENS = 100;
const FIRST_TOKENS = 20;

/** Of a cap, what others can have when the last places are kept for somebody. */
const KEPT_AT_MOST = 0.85;

/** How soon a unit comes that control has, milliseconds; and how long after it was lacked that is hoped for again. */
const UNIT_WITHIN_MS = 50;
const LACK_FORGOTTEN_MS = 2_000;
/** How often the limit doubles while it is not known how long answers take. */
const GROW_EVERY_MS = 500;

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
  /** Whether a unit was asked for in vain; since when it is lacked then, and when that was last seen. */
  readonly #lack = { asked: false, sinceAt: undefined as number | undefined, seenAt: 0 };
  readonly #leases: Leases;
  /** Times of late, milliseconds: of streams to their first token, of other answers to their end, made comparable. */
  readonly speed = { firstToken: new PeakEwma(), whole: new PeakEwma() };
  /** Its limit has grown. */
  onGrown: (() => void) | undefined;
  /** Requests there that have had nothing of their answers yet; whole answers until they end. */
  #awaiting = 0;
  #adaptive: AdaptiveLimit | undefined;
  /** What the adaptive limit was made for, so that a change is seen. */
  #adapted = '';
  /** Asks for a call after so many milliseconds. */
  onStalled: ((ms: number, run: () => void) => void) | undefined;
  #stalled = false;
  #unwell = false;
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

  /** Set by control's probes; passive health stands beside it. */
  get unwell(): boolean {
    return this.#unwell;
  }

  set unwell(unwell: boolean) {
    if (this.#unwell && !unwell) this.#adaptive?.restart();
    this.#unwell = unwell;
  }

  /** What moves its limit below the cap; what was learned is kept where that is as it was. */
  adapt({ adaptive, firstToken }: BackendSettings['limits']): void {
    const name = adaptive ?? (firstToken === undefined ? 'knee' : 'target');
    const adapted = `${name} ${firstToken}`;
    if (adapted === this.#adapted) return;
    this.#adapted = adapted;
    this.#adaptive = name === 'off' ? undefined : new AdaptiveLimit(name, firstToken);
  }

  get inflight(): number {
    return this.#leases.used(this.key);
  }

  /** Requests of usual size that this worker may have here at once. */
  get limit(): number {
    const held = this.#leases.held(this.key);
    return this.#adaptive ? Math.min(held, Math.max(this.inflight, this.#adaptive.requests)) : held;
  }

  /** The limit that it would have here, were the cap of `total` shared evenly among the workers or better. */
  limitOfShare(total: number, workers: number): number {
    const share = Math.max(this.#leases.held(this.key), Math.ceil(total / workers));
    return this.#adaptive ? Math.min(share, Math.max(this.inflight, this.#adaptive.requests)) : share;
  }

  get hasRoom(): boolean {
    const { inflight } = this;
    if (inflight >= this.#leases.held(this.key)) return false;
    return this.#fits(inflight);
  }

  /**
   * Whether a unit that it lacks may be had: nobody has asked for one yet, as the first that waits does, or only just now. One
   * that another worker does not use is there at once.
   */
  mayGetUnit(now: number): boolean {
    if (!this.lacksUnit) return false;
    const lack = this.#lack;
    if (!lack.asked || now - lack.seenAt > LACK_FORGOTTEN_MS) lack.sinceAt = undefined;
    lack.seenAt = now;
    if (!lack.asked) return true;
    lack.sinceAt ??= now;
    return now - lack.sinceAt < UNIT_WITHIN_MS;
  }

  /** It could take one more, had this worker a unit of its cap for it. */
  get lacksUnit(): boolean {
    const { inflight } = this;
    return inflight >= this.#leases.held(this.key) && this.#fits(inflight);
  }

  /**
   * Takes a place for a request that is reckoned at `tokens`; false where there is none. `waiting` is how many wait for one,
   * this one included.
   */
  take(tokens: number, waiting: number): boolean {
    if (!this.#fits(this.inflight)) {
      this.#growWithTime();
      return false;
    }
    const taken = this.#leases.take(this.key, waiting);
    if (taken === this.#lack.asked) this.#lack.asked = !taken;
    if (!taken) return false;
    this.tokensInFlight += tokens;
    this.#awaiting++;
    this.#adaptive?.took(tokens);
    this.gauge?.sent(this.inflight);
    return true;
  }

  /** While nothing has come back that could be learned from, whoever waits is not held up for longer than a little. */
  #growWithTime(): void {
    const adaptive = this.#adaptive;
    if (this.#stalled || !adaptive?.isBlind || this.inflight >= this.#leases.held(this.key)) return;
    this.#stalled = true;
    this.onStalled?.(GROW_EVERY_MS, () => {
      this.#stalled = false;
      if (adaptive !== this.#adaptive || !adaptive.isBlind || this.inflight === 0) return;
      adaptive.growBlindly();
      this.onGrown?.();
      if (!this.#fits(this.inflight)) this.#growWithTime();
    });
  }

  /** Whether the adaptive limit has room, or lets one more in since nothing there waits for its first token. */
  #fits(inflight: number): boolean {
    const adaptive = this.#adaptive;
    if (adaptive === undefined || adaptive.hasRoom(this.tokensInFlight, inflight)) return true;
    return this.#awaiting === 0 && adaptive.eager;
  }

  /** Gives the place back. `begun`: it was a stream whose first content had come. */
  give(tokens: number, begun = false): void {
    if (!begun) this.#awaiting--;
    // Before the unit is given back: somebody may have it at once, and others may leave for that.
    this.tokensInFlight -= tokens;
    this.#leases.give(this.key);
    if (this.inflight === 0) this.tokensInFlight = 0; // sums of fractions leave a little behind
  }

  /** The engine's own load was read anew. */
  gauged(reading: GaugeReading, now: number): void {
    this.gauge ??= new EngineGauge();
    this.gauge.read(reading, this.inflight, now);
    const { waiting, running } = reading;
    if (waiting === undefined || !this.gauge.isFresh(now)) return;
    this.#adaptive?.gauged(waiting, running ?? this.inflight, this.tokensInFlight, now);
  }

  /** The first content of a stream has come; `deadlineMs` is its route's. */
  began(sent: Sent, tokensIn: number, deadlineMs: number, now: number): void {
    this.speed.firstToken.observe(now - sent.startedAt, now);
    this.#awaiting--;
    const adaptive = this.#adaptive;
    if (adaptive === undefined) return;
    const before = adaptive.tokens;
    adaptive.firstToken(sent, tokensIn, deadlineMs, this.#isCapped(sent), now);
    if (adaptive.tokens > before || this.#awaiting === 0) this.onGrown?.();
  }

  /** An attempt was answered whole: what it took. `bytes` is the size of what was sent. */
  served(sent: Sent, sample: ServedSample, bytes: number, deadlineMs: number, now: number): void {
    const { firstTokenMs, totalMs, tokensIn, tokensOut, kind } = sample;
    const adaptive = this.#adaptive;
    if (firstTokenMs !== undefined) {
      adaptive?.streamed(totalMs);
      return;
    }
    this.speed.whole.observe(comparable(totalMs, sample), now);
    if (adaptive === undefined) return;
    const before = adaptive.tokens;
    const sizeIn = kind === 'tensors' ? bytes : tokensIn;
    adaptive.whole(sent, sizeIn, tokensOut, deadlineMs, this.#isCapped(sent), now);
    if (adaptive.tokens > before) this.onGrown?.();
  }

  /** An attempt ended before it gave anything. */
  cutOff(sent: Sent, streamed: boolean, deadlineMs: number, now: number): void {
    this.#adaptive?.cutOff(sent, deadlineMs, streamed, now);
  }

  /** The cap was binding when it was sent, or all of it that is not kept for somebody else. */
  #isCapped({ inflight, contested }: Sent): boolean {
    const held = this.#leases.held(this.key);
    return inflight >= (contested ? KEPT_AT_MOST * held : held);
  }

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
    this.#adaptive?.dropped(this.tokensInFlight, now);
  }

  observe(observation: BreakerObservation, now: number): void {
    const before = this.breaker.state;
    this.breaker.observe(observation, now);
    if (before !== 'closed' && this.breaker.state === 'closed') this.#adaptive?.restart();
  }

  state(now: number): 'well' | 'cooling' | 'open' | 'half-open' | 'unwell' {
    if (this.unwell) return 'unwell';
    if (this.breaker.state !== 'closed') return this.breaker.state;
    return this.coolUntil > now ? 'cooling' : 'well';
  }
}

/** What an answer would have taken had it been as long as others it is compared with: most of its time is its length. */
function comparable(totalMs: number, { tokensOut, kind }: ServedSample): number {
  if (kind !== 'chat' && kind !== 'completions') return totalMs;
  return (totalMs * (FIRST_TOKENS + COMPARED_TOKENS)) / (FIRST_TOKENS + tokensOut);
}

export function endpointKey(backend: string, address: string): string {
  return `${backend}|${address}`;
}
