/** Rates that a watched one may have risen to, as multiples of what is usual and, the last ones, as they are. */
const MULTIPLES = [2, 4, 7];
const RATES = [0.3, 0.7];

/**
 * Notices that a rate has risen above `usual`, whenever that begins. For each rate q that it may have risen to, the
 * likelihood ratio (q/u)^x ((1-q)/(1-u))^(1-x) is multiplied up, beginning anew at 1 wherever it has sunk below; it alarms when
 * the mean over q reaches `runLength`. While the rate is at or below what is usual the mean number of observations until
 * a false alarm is `runLength` or more (e-detectors of the CUSUM kind: Shin, Ramdas and Rinaldo, arXiv 2203.03532).
 */
export class RateWatch {
  readonly usual: number;
  readonly runLength: number;
  #values: number[];
  readonly #rates: number[];

  /** `usual` above 0 and below 0.5; `values` are those of a watch that goes on. */
  constructor(usual: number, runLength: number, values?: readonly number[]) {
    if (!(usual > 0 && usual < 0.5 && runLength > 1))
      throw new RangeError(`no watch at ${usual}, ${runLength}`);
    this.usual = usual;
    this.runLength = runLength;
    const risen = MULTIPLES.map((multiple) => multiple * usual).filter((rate) => rate < RATES[0]!);
    this.#rates = [...risen, ...RATES.filter((rate) => rate > usual)];
    this.#values = values?.length === this.#rates.length ? [...values] : this.#rates.map(() => 1);
  }

  get values(): readonly number[] {
    return this.#values;
  }

  /** The evidence: at `runLength` it is enough. */
  get evidence(): number {
    return this.#values.reduce((sum, value) => sum + value, 0) / this.#values.length;
  }

  /** Gives whether this is an alarm. */
  observe(happened: boolean): boolean {
    this.#values = this.#values.map((value, i) => {
      const rate = this.#rates[i]!;
      const bet = happened ? rate / this.usual : (1 - rate) / (1 - this.usual);
      // Beyond what is enough a value need not grow, and cannot overflow.
      return Math.min(Math.max(value, 1) * bet, this.runLength * 1e6);
    });
    return this.evidence >= this.runLength;
  }
}
