import type { RateLimit } from '../../config/rate-limits.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { ControlToGateway, GatewayToControl } from '../../links/messages.ts';
import { TokenBucket } from '../../policies/token-bucket/index.ts';
import type { QuotaDone, QuotaRefusal, Rate } from './reservation.ts';

type Outgoing = Extract<GatewayToControl, { type: 'quota-ask' | 'quota-used' | 'quota-known' }>;
type Incoming = Extract<ControlToGateway, { type: 'quota-answer' | 'quota-level' }>;

/** How long control may take to answer; then, and until it does, this worker decides on its own share. */
const ANSWER_MS_MAX = 1000;
/** Questions that may be open at once; beyond them the share decides as well. */
const OPEN_MAX = 10_000;

/** A question that control has not answered. */
interface Asked {
  ask: number;
  rates: readonly Rate[];
  amounts: readonly number[];
  dueAt: number;
  /** Undefined once it was decided without control. */
  done: QuotaDone | undefined;
}

export interface RatesOptions {
  clock: Clock;
  timers: Timers;
  /** Absent where there is no control to share with. */
  link?: {
    /** False where there is no connection. */
    send: (message: Outgoing) => boolean;
    /** Runs something at the end of this turn of the loop. */
    soon: (run: () => void) => void;
  };
}

/**
 * The rates of this worker's tenants. A worker that is the only one keeps the buckets itself. Several leave them to control,
 * which is asked for each request: together they never get more than there is. Where control has just said that there is
 * too little, it is not asked again before there may be enough, so that a flood stays here. While it does not answer, each
 * worker goes on with its share of the rate, and tells afterwards what it let pass.
 */
export class Rates {
  readonly #options: RatesOptions;
  #rates = new Map<string, Rate>();
  #workers = 1;
  #asks = 0;
  /** In the order they were asked in, which is that of the answers; those before `#first` are answered. */
  #asked: Asked[] = [];
  #first = 0;
  #timer: TimerHandle;
  #up = false;
  #dirty: Rate[] = [];

  constructor(options: RatesOptions) {
    this.#options = options;
  }

  /** The limits of a new snapshot. What is there of each stays, in proportion. */
  swap(limits: readonly RateLimit[], workers: number): ReadonlyMap<string, Rate> {
    const now = this.#options.clock.mono();
    const wasAlone = !this.#shared;
    const rates = new Map<string, Rate>();
    for (const limit of limits) {
      const rate = this.#rates.get(limit.key);
      if (rate) {
        if (rate.limit.burst !== limit.burst || rate.limit.perSecond !== limit.perSecond) {
          rate.bucket.resize(limit, now);
          rate.share = undefined;
        }
        rate.limit = limit;
        rates.set(limit.key, rate);
      } else {
        const bucket = new TokenBucket(limit, now);
        rates.set(limit.key, { limit, bucket, closed: false, owed: 0, dirty: false, share: undefined });
      }
    }
    this.#rates = rates;
    this.#workers = workers;
    if (wasAlone && this.#shared) this.#tellLevels();
    return rates;
  }

  /** Takes these amounts, all or none. `done` is called once, at once or when control has answered. */
  take(rates: readonly Rate[], amounts: readonly number[], done: QuotaDone): void {
    const now = this.#options.clock.mono();
    if (!this.#shared) {
      done(takeAll(rates, amounts, now));
      return;
    }
    for (let i = 0; i < rates.length; i++) {
      const { bucket, closed } = rates[i]!;
      const waitMs = closed || amounts[i]! > bucket.burst ? bucket.waitMs(amounts[i]!, now) : 0;
      if (waitMs > 0) {
        done(refusalOf(rates, amounts, now));
        return;
      }
    }
    if (!this.#ask(rates, amounts, done, now)) done(this.#takeShare(rates, amounts, now));
  }

  /** So much more was used of a rate than was taken; below 0 less. */
  settle(rate: Rate, used: number): void {
    if (used === 0) return;
    rate.bucket.observe({ used }, this.#options.clock.mono());
    if (this.#shared) this.#owe(rate, used);
  }

  /** What is there of each rate, as far as this worker knows. */
  levels(): Record<string, number> {
    const now = this.#options.clock.mono();
    return Object.fromEntries([...this.#rates].map(([key, { bucket }]) => [key, bucket.level(now)]));
  }

  /** A connection stands. */
  up(): void {
    this.#up = true;
    if (!this.#shared) return;
    this.#tellLevels();
    this.#flush();
  }

  /** The connection has ended: what control was asked is decided here. */
  down(): void {
    this.#up = false;
    const open = this.#asked.slice(this.#first);
    this.#asked = [];
    this.#first = 0;
    for (const asked of open) this.#decideHere(asked);
  }

  heard(message: Incoming): void {
    const now = this.#options.clock.mono();
    if (message.type === 'quota-level') {
      const rate = this.#rates.get(message.key);
      if (!rate) return;
      rate.bucket.set(message.level, now);
      rate.closed = false;
      return;
    }
    const asked = this.#asked[this.#first];
    if (!asked || asked.ask !== message.ask) return;
    this.#answered();
    for (let i = 0; i < asked.rates.length; i++) {
      const level = message.levels[i];
      const rate = asked.rates[i]!;
      rate.share = undefined;
      if (typeof level !== 'number') continue;
      rate.bucket.set(level, now);
      rate.closed = !message.granted && rate.bucket.waitMs(asked.amounts[i]!, now) > 0;
    }
    if (!asked.done) {
      // It was decided without control, and told to control since.
      if (message.granted) this.#giveBack(asked);
      return;
    }
    asked.done(message.granted ? undefined : refusalOf(asked.rates, asked.amounts, now));
  }

  get #shared(): boolean {
    return this.#workers > 1 && this.#options.link !== undefined;
  }

  #ask(rates: readonly Rate[], amounts: readonly number[], done: QuotaDone, now: number): boolean {
    const first = this.#asked[this.#first];
    const isLate = first !== undefined && first.done === undefined;
    if (!this.#up || isLate || this.#asked.length - this.#first >= OPEN_MAX) return false;
    const keys = rates.map(({ limit }) => limit.key);
    const ask = ++this.#asks;
    if (!this.#options.link!.send({ type: 'quota-ask', ask, keys, amounts: [...amounts] })) return false;
    this.#asked.push({ ask, rates, amounts, done, dueAt: now + ANSWER_MS_MAX });
    this.#timer ??= this.#options.timers.set(ANSWER_MS_MAX, () => this.#late());
    return true;
  }

  #answered(): void {
    this.#first++;
    if (this.#first * 2 < this.#asked.length && this.#first < 1000) return;
    this.#asked = this.#asked.slice(this.#first);
    this.#first = 0;
  }

  /** What control has not answered in time is decided here; its answers are waited for all the same. */
  #late(): void {
    this.#timer = undefined;
    const now = this.#options.clock.mono();
    for (const asked of this.#asked.slice(this.#first)) {
      if (asked.dueAt <= now) this.#decideHere(asked);
      else if (this.#timer === undefined && asked.done) {
        this.#timer = this.#options.timers.set(asked.dueAt - now, () => this.#late());
      }
    }
  }

  #decideHere(asked: Asked): void {
    const { done } = asked;
    if (!done) return;
    asked.done = undefined;
    done(this.#takeShare(asked.rates, asked.amounts, this.#options.clock.mono()));
  }

  /**
   * A worker's share holds the part of the rate that falls to each, beginning with its part of what was there by the last
   * answer. What is more than a share can hold takes all of it and leaves it in debt.
   */
  #takeShare(rates: readonly Rate[], amounts: readonly number[], now: number): QuotaRefusal | undefined {
    const fitting: number[] = [];
    for (let i = 0; i < rates.length; i++) {
      const { limit, bucket } = rates[i]!;
      const size = { perSecond: limit.perSecond / this.#workers, burst: limit.burst / this.#workers };
      rates[i]!.share ??= new TokenBucket(size, now, bucket.level(now) / this.#workers);
      fitting.push(amounts[i]! > limit.burst ? amounts[i]! : Math.min(amounts[i]!, size.burst));
    }
    const shares = rates.map(({ limit, share }) => ({ limit, bucket: share! }));
    const refusal = takeAll(shares, fitting, now);
    if (refusal) {
      if (refusal.by === 'rate') {
        refusal.input = undefined;
        refusal.code = refusal.waitMs === Number.POSITIVE_INFINITY ? 'quota-never' : 'quota-share-short';
        refusal.figures['workers'] = this.#workers;
      }
      return refusal;
    }
    for (let i = 0; i < rates.length; i++) {
      const rate = rates[i]!;
      const amount = amounts[i]!;
      rate.share!.observe({ used: amount - fitting[i]! }, now);
      rate.bucket.observe({ used: amount }, now);
      this.#owe(rate, amount);
    }
    return undefined;
  }

  #giveBack({ rates, amounts }: Asked): void {
    for (let i = 0; i < rates.length; i++) this.settle(rates[i]!, -amounts[i]!);
  }

  #owe(rate: Rate, used: number): void {
    rate.owed += used;
    if (rate.dirty) return;
    rate.dirty = true;
    if (this.#dirty.length === 0) this.#options.link!.soon(() => this.#flush());
    this.#dirty.push(rate);
  }

  /** Tells control what was used, all of one turn together. What cannot be told now is told when a connection stands. */
  #flush(): void {
    if (!this.#up || this.#dirty.length === 0) return;
    const used: Record<string, number> = {};
    for (const { limit, owed } of this.#dirty) used[limit.key] = owed;
    if (!this.#options.link!.send({ type: 'quota-used', used })) return;
    for (const rate of this.#dirty.splice(0)) {
      rate.owed = 0;
      rate.dirty = false;
    }
  }

  /** For a control that does not know better. */
  #tellLevels(): void {
    const now = this.#options.clock.mono();
    const levels: Record<string, number> = {};
    // What is still owed comes off it there.
    for (const [key, { bucket, owed }] of this.#rates) levels[key] = bucket.level(now) + owed;
    if (this.#rates.size > 0) this.#options.link!.send({ type: 'quota-known', levels });
  }
}

/** Takes from all buckets or from none. */
function takeAll(
  rates: readonly Pick<Rate, 'limit' | 'bucket'>[],
  amounts: readonly number[],
  now: number,
): QuotaRefusal | undefined {
  for (let i = 0; i < rates.length; i++) {
    // A request that needs nothing of it is none of the bucket's business, whatever its debt.
    if (amounts[i] === 0 || rates[i]!.bucket.decide({ asked: amounts[i]! }, now).choice) continue;
    for (let taken = 0; taken < i; taken++) rates[taken]!.bucket.observe({ used: -amounts[taken]! }, now);
    return refusalOf(rates, amounts, now);
  }
  return undefined;
}

/** Of all that are short the one that will be so for longest. */
function refusalOf(
  rates: readonly Pick<Rate, 'limit' | 'bucket'>[],
  amounts: readonly number[],
  now: number,
): QuotaRefusal {
  let longest = 0;
  let waitMs = -1;
  for (let i = 0; i < rates.length; i++) {
    const waits = amounts[i] === 0 ? -1 : rates[i]!.bucket.waitMs(amounts[i]!, now);
    if (waits > waitMs) [longest, waitMs] = [i, waits];
  }
  const { limit, bucket } = rates[longest]!;
  const asked = amounts[longest]!;
  const { code, figures } = bucket.refusal(asked, now);
  return { by: 'rate', limit, code, figures, waitMs: Math.max(1, waitMs), input: bucket.read(asked, now) };
}
