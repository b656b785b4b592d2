/** New values after which quantiles are worked out anew. */
const STALE_AFTER = 16;

/**
 * The last `size` values and their quantiles. A quantile is worked out when asked for, and again once enough new values have
 * come: between, it stays as it is.
 */
export class RecentValues {
  readonly #values: Float64Array;
  readonly #sorted: Float64Array;
  #count = 0;
  #next = 0;
  #sortedCount = 0;
  #fresh = 0;

  constructor(size: number) {
    this.#values = new Float64Array(size);
    this.#sorted = new Float64Array(size);
  }

  /** Values that are kept now. */
  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % this.#values.length;
    if (this.#count < this.#values.length) this.#count++;
    this.#fresh++;
  }

  /** The value below which a share `q` of the kept ones lie (nearest rank); undefined with fewer than `countMin` of them. */
  quantile(q: number, countMin: number): number | undefined {
    if (this.#count < Math.max(1, countMin)) return undefined;
    if (this.#fresh >= STALE_AFTER || this.#sortedCount < countMin || this.#sortedCount === 0) {
      this.#sorted.set(this.#values);
      this.#sorted.subarray(0, this.#count).sort();
      this.#sortedCount = this.#count;
      this.#fresh = 0;
    }
    return this.#sorted[Math.max(0, Math.ceil(q * this.#sortedCount) - 1)];
  }
}
