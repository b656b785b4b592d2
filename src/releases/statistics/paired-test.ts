import { assert } from '../../kernel/assert.ts';
import { logMean } from './log-mean.ts';

const BETS = [0.1, 0.25, 0.5] as const;

export interface PairedState {
  worse: number[];
  fine: number[];
}

/**
 * Tests how much worse answers are on average, pair by pair, however often it is looked at.
 * Formula: bets on a bounded mean, mean over λ of Π(1 - λ(d + m)), with d = -difference and m the margin; for the absence
 * of harm the mirror, Π(1 + λ(d + m)). Waudby-Smith and Ramdas, arXiv 2010.09686. Pairs have to be of sessions that have
 * nothing to do with one another.
 */
export class PairedTest {
  readonly #margin: number;
  readonly #worse: number[];
  readonly #fine: number[];

  /** `margin`: how much worse they may be on average, 0 to 0.9. */
  constructor(margin: number, state?: PairedState) {
    assert(margin >= 0 && margin <= 0.9, 'a margin of 0 to 0.9');
    this.#margin = margin;
    this.#worse = state?.worse ?? BETS.map(() => 0);
    this.#fine = state?.fine ?? BETS.map(() => 0);
  }

  /** How much worse the canary's answer is, -1 to 1. */
  add(difference: number): void {
    const beyond = difference - this.#margin; // -1.9 to 1, so that no bet of at most a half loses everything
    BETS.forEach((bet, i) => {
      this.#worse[i]! += Math.log(1 + bet * beyond);
      this.#fine[i]! += Math.log(1 - bet * beyond);
    });
  }

  /** The logarithm of the evidence that they are worse by more than the margin. */
  harm(): number {
    return logMean(this.#worse);
  }

  /** The logarithm of the evidence that they are not. */
  harmless(): number {
    return logMean(this.#fine);
  }

  toJSON(): PairedState {
    return { worse: this.#worse, fine: this.#fine };
  }
}
