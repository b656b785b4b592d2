import { Stakes, type StakesState } from './stakes.ts';

const SHARES = [0.1, 0.2, 0.4, 0.8];

interface State {
  over: number[];
  under: number[];
  stakes: StakesState;
}

/**
 * B6: bets on p - y, the probability that was told less what came of it, and on its mirror (Arnold, Henzi, Ziegel,
 * Sequentially valid tests for forecast calibration, arXiv 2109.11761). `lifetime` is evidence against "it has always been
 * calibrated", an e-value at any time; the stakes are e-detectors of a change.
 */
export class CalibrationBets {
  readonly stakes = new Stakes(SHARES.length * 2);
  /** What a mean of p - y may be off by for the reference that p was calibrated on. */
  readonly #margin: number;
  #over = SHARES.map(() => 1);
  #under = SHARES.map(() => 1);

  constructor(margin = 0) {
    this.#margin = margin;
  }

  /** `right`: 1 where what was predicted with probability `p` came true, else 0. */
  observe(p: number, right: number): void {
    const over = p - right - this.#margin;
    const under = right - p - this.#margin;
    for (let i = 0; i < SHARES.length; i++) {
      const [high, low] = [1 + SHARES[i]! * over, 1 + SHARES[i]! * under];
      this.#over[i]! *= high;
      this.#under[i]! *= low;
      this.stakes.settle(i * 2, high);
      this.stakes.settle(i * 2 + 1, low);
    }
  }

  /** The e-value of each side: an alarm at 1/alpha is false with probability alpha at most, however often it is read. */
  get lifetime(): { over: number; under: number } {
    return { over: mean(this.#over), under: mean(this.#under) };
  }

  get direction(): 'overconfident' | 'underconfident' {
    return this.stakes.best % 2 === 0 ? 'overconfident' : 'underconfident';
  }

  toJSON(): State {
    return { over: this.#over, under: this.#under, stakes: this.stakes.toJSON() };
  }

  restore({ over, under, stakes }: State): void {
    this.#over = over;
    this.#under = under;
    this.stakes.restore(stakes);
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
