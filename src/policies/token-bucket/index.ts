import type { Decision, Policy } from '../contracts.ts';

/** How fast a bucket fills, in units a second, and the most that it holds. */
export interface BucketSize {
  perSecond: number;
  burst: number;
}

/** What was read for a decision, enough to replay it. */
export interface BucketInput extends BucketSize {
  asked: number;
  there: number;
}

/** Units that are nothing but what additions of fractions leave over. */
const ROUNDING = 1e-6;
/** The most that a bucket may be in debt: ten times what it holds, or what comes in an hour, whichever is more. */
const DEBT_BURSTS_MAX = 10;
const DEBT_SECONDS_MAX = 3600;

export const TOKEN_BUCKET = { name: 'token-bucket', version: 1 } as const;

const GRANTED: Decision<boolean> = { choice: true, reason: { code: 'quota-granted', figures: {} } };

/**
 * The bucket of a rate limit. It fills with time up to its burst; what is asked for is taken whole or not at all. What turns
 * out to be used beyond that may leave it in debt, which has to be filled up before anything is granted again.
 */
export class TokenBucket implements Policy<{ asked: number }, boolean, { used: number }> {
  readonly name = TOKEN_BUCKET.name;
  readonly version = TOKEN_BUCKET.version;
  #perSecond: number;
  #burst: number;
  #level: number;
  #at: number;

  /** Full, unless `level` says otherwise. */
  constructor({ perSecond, burst }: BucketSize, now: number, level = burst) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#level = Math.min(level, burst);
    this.#at = now;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  get burst(): number {
    return this.#burst;
  }

  /** What may be taken now; below 0 where it is in debt. */
  level(now: number): number {
    if (now > this.#at) {
      const came = ((now - this.#at) / 1000) * this.#perSecond;
      this.#level = Math.min(this.#burst, this.#level + came);
      this.#at = now;
    }
    return this.#level;
  }

  /** Milliseconds until so much is there, if nobody takes anything meanwhile; Infinity where it never can be. */
  waitMs(asked: number, now: number): number {
    const missing = asked - this.level(now);
    if (missing <= ROUNDING) return 0;
    return asked > this.#burst + ROUNDING ? Number.POSITIVE_INFINITY : toComeMs(missing, this.#perSecond);
  }

  /** Milliseconds until it is full. */
  fullMs(now: number): number {
    const missing = this.#burst - this.level(now);
    return missing <= ROUNDING ? 0 : toComeMs(missing, this.#perSecond);
  }

  /** Takes what is asked for, where it is there. */
  decide({ asked }: { asked: number }, now: number): Decision<boolean> {
    if (this.waitMs(asked, now) > 0) return { choice: false, reason: this.refusal(asked, now) };
    this.#level -= asked;
    return GRANTED;
  }

  /** Why so much cannot be had now. */
  refusal(asked: number, now: number): Decision<boolean>['reason'] {
    const figures = { asked: rounded(asked), there: rounded(this.level(now)), max: rounded(this.#burst) };
    const waitMs = this.waitMs(asked, now);
    if (waitMs === Number.POSITIVE_INFINITY) return { code: 'quota-never', figures };
    const more = { perSecond: rounded(this.#perSecond), retryAfterMs: Math.ceil(waitMs) };
    return { code: 'quota-short', figures: { ...figures, ...more } };
  }

  /** So much was used without being asked for; below 0, what was taken and not used comes back. */
  observe({ used }: { used: number }, now: number): void {
    const debtMax = Math.max(this.#burst * DEBT_BURSTS_MAX, this.#perSecond * DEBT_SECONDS_MAX);
    this.#level = Math.min(this.#burst, Math.max(-debtMax, this.level(now) - used));
  }

  /** What another one knows of the same bucket. */
  set(level: number, now: number): void {
    this.#level = Math.min(this.#burst, level);
    this.#at = now;
  }

  /** The limit has changed: the same share of it is there as before, and a debt stays what it is. */
  resize({ perSecond, burst }: BucketSize, now: number): void {
    const level = this.level(now);
    if (level > 0) this.#level = (level / this.#burst) * burst;
    else if (this.#burst === 0) this.#level = 0;
    this.#perSecond = perSecond;
    this.#burst = burst;
  }

  /** What a refusal reads, for its record. */
  read(asked: number, now: number): BucketInput {
    return { asked, there: this.level(now), perSecond: this.#perSecond, burst: this.#burst };
  }
}

/** Decides again on what was read. */
export function replayBucket({ asked, there, ...size }: BucketInput): Decision<boolean> {
  return new TokenBucket(size, 0, there).decide({ asked }, 0);
}

/** To the microsecond, up; what fractions leave over is no microsecond more. */
function toComeMs(units: number, perSecond: number): number {
  return Math.ceil((units / perSecond) * 1e6 - 1e-3) / 1000;
}

function rounded(units: number): number {
  return Math.round(units * 1000) / 1000;
}
