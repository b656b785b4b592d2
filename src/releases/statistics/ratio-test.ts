import { assert } from '../../kernel/assert.ts';
import { logMean } from './log-mean.ts';

/** How many times as often the canary's sessions may be marked, where harm is looked for, and where its absence is. */
const WORSE = [1.25, 1.5, 2, 3, 5, 8] as const;
const NO_WORSE = [0.5, 0.75, 0.9, 1] as const;

export type RatioState = [ratio: number, log: number][];

/**
 * Tests how many times as often one arm's sessions are marked as the other's, however often it is looked at. Each marked
 * session adds what its arm says: under a ratio r, one that falls into the canary with the chance w if the arms are alike
 * does so with p = r w / (r w + 1 - w).
 *
 * Formula: likelihood ratios of conditional Bernoulli trials, which are e-values: by Ville's inequality one that is to be
 * believed reaches 1/α with a chance of at most α, at any time. Lindon and Malek, Anytime-Valid Inference for Multinomial
 * Count Data (2022); Waudby-Smith and others, arXiv 2205.14762. Exact while the chance w does not depend on which sessions
 * will be marked; it may change at any time.
 */
export class RatioTest {
  /** By ratio: the logarithm of the product of r^z / (w r + 1 - w), that is, of the likelihood of r against that of 1. */
  readonly #logs: Map<number, number>;

  /** `bounds`: ratios above 1 that are to be ruled out, besides those that harm is looked for at. */
  constructor(bounds: readonly number[], state?: RatioState) {
    this.#logs = new Map(state ?? [...NO_WORSE, ...WORSE, ...bounds].map((ratio) => [ratio, 0]));
  }

  /** A session was marked: in the canary, or not. `share`: the chance that it fell into the canary, above 0 and below 1. */
  add(inCanary: boolean, share: number): void {
    assert(share > 0 && share < 1, 'a share of neither all nor nothing');
    for (const [ratio, log] of this.#logs) {
      this.#logs.set(ratio, log + (inCanary ? Math.log(ratio) : 0) - Math.log(share * ratio + 1 - share));
    }
  }

  /** The logarithm of the evidence that the canary is marked more often. Of what is alike: at most 1 on average. */
  harm(): number {
    return logMean(WORSE.map((ratio) => this.#log(ratio)));
  }

  /** The logarithm of the evidence that it is marked less than `bound` times as often: one of the bounds given. */
  harmless(bound: number): number {
    return logMean(NO_WORSE.map((ratio) => this.#log(ratio))) - this.#log(bound);
  }

  /** The logarithm of the likelihood of one ratio against that of 1. */
  #log(ratio: number): number {
    const log = this.#logs.get(ratio);
    assert(log !== undefined, `ratio ${ratio} is one of those that are followed`);
    return log;
  }

  toJSON(): RatioState {
    return [...this.#logs];
  }

  /** For vectors of others: the logarithm of the likelihood of one ratio, which has to be followed, against that of 1. */
  likelihood(ratio: number): number {
    return this.#log(ratio);
  }
}
