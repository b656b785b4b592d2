import { bucketTop } from '../../kernel/buckets.ts';

export type HistogramState = [bucket: number, count: number][];

/** Counts of the buckets of kernel/buckets.ts; there are some hundreds of those. */
export class Histogram {
  readonly #counts: Map<number, number>;
  #count = 0;

  constructor(state: HistogramState = []) {
    this.#counts = new Map();
    this.add(state);
  }

  get count(): number {
    return this.#count;
  }

  add(buckets: readonly (readonly [bucket: number, count: number])[]): void {
    for (const [bucket, count] of buckets) {
      this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
      this.#count += count;
    }
  }

  /** The top of the bucket at or below which a share of all values lies; 0 where there are none. */
  quantile(share: number): number {
    if (this.#count === 0) return 0;
    let left = share * this.#count;
    const buckets = [...this.#counts].sort(([a], [b]) => a - b);
    for (const [bucket, count] of buckets) {
      left -= count;
      if (left <= 0) return bucketTop(bucket);
    }
    return bucketTop(buckets.at(-1)![0]);
  }

  toJSON(): HistogramState {
    return [...this.#counts];
  }
}
