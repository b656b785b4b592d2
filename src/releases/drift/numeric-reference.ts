/** Where a value lies among frozen ones. Values are kept in single precision: 4 bytes each. */
export class NumericReference {
  readonly sorted: Float32Array;
  /** The share of the most frequent value: 1 where all are the same. */
  readonly commonest: number;

  constructor(values: Float32Array) {
    this.sorted = values.slice().sort();
    let longest = 0;
    for (let i = 0, run = 0; i < this.sorted.length; i++) {
      run = this.sorted[i] === this.sorted[i - 1] ? run + 1 : 1;
      longest = Math.max(longest, run);
    }
    this.commonest = longest / Math.max(1, this.sorted.length);
  }

  get rows(): number {
    return this.sorted.length;
  }

  get isConstant(): boolean {
    return this.commonest === 1;
  }

  /**
   * The rank of a value among the reference and itself, even on (0, 1) where it is of the same distribution: ties are broken
   * by `draw`, a number in [0, 1).
   */
  rank(value: number, draw: number): number {
    const single = Math.fround(value);
    const below = this.#count(single, false);
    const equal = this.#count(single, true) - below;
    return (below + draw * (equal + 1)) / (this.sorted.length + 1);
  }

  quantile(share: number): number {
    const at = Math.min(this.rows - 1, Math.max(0, Math.ceil(share * this.rows) - 1));
    return this.sorted[at] ?? Number.NaN;
  }

  /** Values below it, or at or below it. */
  #count(value: number, alsoEqual: boolean): number {
    let low = 0;
    let high = this.sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.sorted[middle]!;
      if (at < value || (alsoEqual && at === value)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
