import type { ConcurrencyLimit, RateLimit } from '../../config/rate-limits.ts';
import type { BucketInput, TokenBucket } from '../../policies/token-bucket/index.ts';

/** A rate as the requests of this worker meet it. */
export interface Rate {
  limit: RateLimit;
  /** What is there: the truth where this worker is the only one, else what control said last, carried on. */
  bucket: TokenBucket;
  /** Control refused what was asked: whoever finds too little in `bucket` need not ask again. */
  closed: boolean;
  /** Used here and not told to control yet; below 0 what was given back. */
  owed: number;
  /** It is among those that are told at the end of the turn. */
  dirty: boolean;
  /** This worker's part of the rate, while control does not answer. */
  share: TokenBucket | undefined;
}

/** A number of requests at once as the requests of this worker meet it. */
export interface Slots {
  limit: ConcurrencyLimit;
  /** Those that wait until a unit has come from another worker. */
  waiting: Reservation[];
  /** Until then nobody waits: somebody did in vain, so that every unit is in use. One that comes free ends it. */
  dryUntil: number;
  /** No snapshot names it: it ends with the last request that uses it. */
  retired: boolean;
}

/** Everything that holds for the requests of one tenant on one route. */
export interface QuotaLine {
  rates: readonly Rate[];
  slots: readonly Slots[];
}

/** Why a request gets no quota. */
export type QuotaRefusal =
  | { by: 'slots'; limit: ConcurrencyLimit }
  | {
      by: 'rate';
      limit: RateLimit;
      code: string;
      figures: Record<string, number | string | boolean | null>;
      /** Infinity where it can never be. */
      waitMs: number;
      /** What was read, for the record; absent where a share of the rate decided. */
      input: BucketInput | undefined;
    };

export type QuotaDone = (refusal: QuotaRefusal | undefined) => void;

/** What one request has taken of its tenant's quota, or asks for. */
export class Reservation {
  readonly line: QuotaLine;
  /** Of each rate of the line, in its units. */
  readonly amounts: readonly number[];
  /** So many of the line's slots are taken. */
  slots = 0;
  /** The rates are taken and not settled. */
  taken = false;
  /** It needs nothing any more: what comes now goes back. */
  over = false;
  done: QuotaDone | undefined;
  /** When it stops waiting for slots, monotonic. */
  dueAt = 0;

  constructor(line: QuotaLine, amounts: readonly number[]) {
    this.line = line;
    this.amounts = amounts;
  }
}
