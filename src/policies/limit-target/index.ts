import type { LimitController, LimitSample } from '../limit-contract.ts';

/** Answers that an epoch is judged on, and how few do where several came too late. */
const SAMPLES = 20;
const SAMPLES_MIN = 6;
const LATE_MIN = 3;
const QUANTILE = 0.95;
/** Shares of what is allowed between which nothing changes. */
const NEAR = 0.85;
/** Part of the way to where the target is reckoned to be that one epoch goes. */
const GAIN = 0.6;
const GROWTH_FIRST = 2;
const GROWTH_MIN = 0.02;
const GROWTH_MAX = 0.25;
/** By how much the least growth is more in the next epoch in a row. */
const GROWTH_GROWTH = 1.6;
const CUT_MAX = 0.5;
/** For how long a limit that was too high is remembered. */
const CEILING_MS = 10_000;
/** Buckets of the histogram of shares, each a twentieth above the one before, from 0.1 to 13. */
const BUCKETS = 101;
const BUCKET_LN = Math.log(1.05);
const BUCKET_FIRST_LN = Math.log(0.1);

/** The most that can be in flight while 95 % of the answers (of streams: of their first tokens) come in time. */
export class TargetLimit implements LimitController {
  readonly name = 'target';
  readonly version = 1;
  starting = true;
  limit: number;
  /** What was too high, and when. */
  #ceiling = Number.POSITIVE_INFINITY;
  #ceilingAt = 0;
  #growthMin = GROWTH_MIN;
  #epochAt = 0;
  #count = 0;
  #late = 0;
  #saturated = 0;
  #inFlight = 0;
  #allowedPart = 0;
  readonly #shares = new Uint16Array(BUCKETS);

  constructor(units = 0) {
    this.limit = units;
  }

  observe(sample: LimitSample, now: number): void {
    if (sample.sentAt < this.#epochAt) return;
    this.#count++;
    if (sample.share > 1) this.#late++;
    if (sample.saturated) this.#saturated++;
    this.#inFlight += sample.inFlight;
    this.#allowedPart += sample.allowedPart;
    this.#shares[bucketOf(sample.share)]!++;
    if (this.#count >= (this.starting ? SAMPLES / 2 : SAMPLES)) this.#judge(now);
    else if (this.#count >= SAMPLES_MIN && this.#late >= LATE_MIN) this.#judge(now);
  }

  dropped(inFlight: number, part: number, now: number): void {
    // What is there is gone by, and not the limit: until it has shrunk to that, the same is said again.
    const rest = inFlight * (1 - part);
    const limit = this.starting ? rest : Math.min(this.limit, rest);
    this.#cut(part, inFlight, now);
    this.limit = limit;
    this.#begin(now);
  }

  restart(units: number): void {
    this.limit = Math.min(this.limit, units);
    this.starting = true;
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#begin(this.#epochAt);
  }

  #judge(now: number): void {
    const share = this.#quantile();
    const inFlight = this.#inFlight / this.#count;
    // By Little's law: what is in flight, over the time for which a place is held, is what leaves in that time.
    const tooMuch = GAIN * (share - 1) * (this.#allowedPart / this.#count);
    if (share > 1) this.#cut(tooMuch, inFlight, now);
    else if (2 * this.#saturated >= this.#count && share < NEAR) this.#grow(-tooMuch, inFlight, now);
    else {
      this.#growthMin = GROWTH_MIN;
      if (this.starting && share >= NEAR) {
        this.starting = false; // it is there already
        this.limit = Math.max(this.limit, inFlight);
      }
    }
    this.#begin(now);
  }

  #cut(part: number, inFlight: number, now: number): void {
    const from = this.starting ? inFlight : Math.min(this.limit, inFlight);
    this.starting = false;
    this.#growthMin = GROWTH_MIN;
    this.#ceiling = from;
    this.#ceilingAt = now;
    this.limit = from * (1 - Math.max(GROWTH_MIN, Math.min(CUT_MAX, part)));
  }

  #grow(part: number, inFlight: number, now: number): void {
    const from = Math.max(this.limit, inFlight);
    if (this.starting) {
      this.limit = from * GROWTH_FIRST;
      return;
    }
    const growth = Math.max(this.#growthMin, Math.min(GROWTH_MAX, part));
    this.#growthMin = Math.min(GROWTH_MAX, this.#growthMin * GROWTH_GROWTH);
    const known = now - this.#ceilingAt < CEILING_MS;
    // Half of the way to what was too high a little while ago.
    const near = known ? Math.max(GROWTH_MIN, (this.#ceiling / from - 1) / 2) : GROWTH_MAX;
    this.limit = from * (1 + Math.min(growth, near));
  }

  #quantile(): number {
    let left = Math.ceil(QUANTILE * this.#count);
    for (let at = 0; at < BUCKETS; at++) {
      left -= this.#shares[at]!;
      if (left <= 0) return Math.exp(BUCKET_FIRST_LN + (at + 0.5) * BUCKET_LN);
    }
    return Number.POSITIVE_INFINITY;
  }

  #begin(now: number): void {
    this.#epochAt = now;
    this.#count = this.#late = this.#saturated = this.#inFlight = this.#allowedPart = 0;
    this.#shares.fill(0);
  }
}

function bucketOf(share: number): number {
  const at = Math.floor((Math.log(share) - BUCKET_FIRST_LN) / BUCKET_LN);
  return Math.max(0, Math.min(BUCKETS - 1, at));
}
