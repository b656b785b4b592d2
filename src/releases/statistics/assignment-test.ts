import { assert } from '../../kernel/assert.ts';
import { logMean } from './log-mean.ts';

/** Odds of falling into the canary, as parts of what they are to be. */
const ODDS = [0.5, 0.8, 1.25, 2] as const;

/**
 * Tests whether sessions fall into the arms by the share, however often it is looked at. Formula: as RatioTest, both ways;
 * the session is the unit (Lindon and Malek, 2022, have the same check as a sample ratio test).
 */
export class AssignmentTest {
  readonly #logs: number[];

  constructor(state?: number[]) {
    this.#logs = state ?? ODDS.map(() => 0);
  }

  /** A session that nobody had seen fell into the canary, or not, of which the chance was `share`, above 0 and below 1. */
  add(inCanary: boolean, share: number): void {
    assert(share > 0 && share < 1, 'a share of neither all nor nothing');
    for (let i = 0; i < ODDS.length; i++) {
      const odds = ODDS[i]!;
      this.#logs[i]! += (inCanary ? Math.log(odds) : 0) - Math.log(share * odds + 1 - share);
    }
  }

  /** The logarithm of the evidence that they do not. */
  skewed(): number {
    return logMean(this.#logs);
  }

  toJSON(): number[] {
    return this.#logs;
  }
}
