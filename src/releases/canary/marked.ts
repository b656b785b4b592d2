import { logMean } from '../statistics/log-mean.ts';
import { rateBelow } from '../statistics/rate-test.ts';
import { type RatioState, RatioTest } from '../statistics/ratio-test.ts';

/** Of the evidence of harm: how much that of whole sessions counts, and that of their first requests. */
const HARM_WEIGHTS = [6, 1] as const;

export interface MarkedState {
  sessions: RatioState;
  firsts: RatioState;
  canary: number;
  others: number;
  marked: number;
  seen: number;
}

/**
 * What is known of one mark, such as `failed`: which sessions got it, the first time each, and which got it at their very
 * first request. Whole sessions tell more; where most of them get the mark at some time, only their first requests still
 * tell arms apart.
 */
export class Marked {
  readonly #sessions: RatioTest;
  readonly #firsts: RatioTest;
  /** Sessions with the mark. */
  canary: number;
  others: number;
  /** Of the first requests at the canary that are followed: those with the mark, and all. */
  marked: number;
  seen: number;

  constructor(bounds: readonly number[], state?: MarkedState) {
    this.#sessions = new RatioTest(bounds, state?.sessions);
    this.#firsts = new RatioTest(bounds, state?.firsts);
    this.canary = state?.canary ?? 0;
    this.others = state?.others ?? 0;
    this.marked = state?.marked ?? 0;
    this.seen = state?.seen ?? 0;
  }

  session(inCanary: boolean, share: number): void {
    if (inCanary) this.canary++;
    else this.others++;
    this.#sessions.add(inCanary, share);
  }

  first(inCanary: boolean, share: number): void {
    this.#firsts.add(inCanary, share);
  }

  /** The logarithm of the evidence of harm. Formula: a weighted mean of e-values is one. */
  harm(): number {
    return logMean([this.#sessions.harm(), this.#firsts.harm()], HARM_WEIGHTS);
  }

  /**
   * The logarithm of the evidence against harm, which is: marked `ratio` times as often or more, as sessions or at first
   * requests, and at `rate` or more of the first requests. Formula: the least of two is an e-value where one of them is, and
   * the mean with the bet on the rate is where both are.
   */
  harmless(ratio: number, rate: number): number {
    const compared = Math.min(this.#sessions.harmless(ratio), this.#firsts.harmless(ratio));
    return logMean([compared, this.rateBelow(rate)]);
  }

  /** The same by the rate alone. */
  rateBelow(rate: number): number {
    return rateBelow(rate, this.marked, this.seen);
  }

  toJSON(): MarkedState {
    const { canary, others, marked, seen } = this;
    return { sessions: this.#sessions.toJSON(), firsts: this.#firsts.toJSON(), canary, others, marked, seen };
  }
}
