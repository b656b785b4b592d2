/** 2^32: every hash of 32 bits is below it. */
const ALL = 2 ** 32;

/**
 * A bounded sample of sessions: those of the smallest hashes, at most `max` of them when it is read. Which they are hangs on
 * the hashes alone, so a sample is as good as all of them for comparing what hashes know nothing of.
 */
export class SmallestHashes<Value> {
  readonly #values = new Map<number, Value>();
  readonly #max: number;
  #below = ALL;

  constructor(max: number) {
    this.#max = max;
  }

  get(hash: number): Value | undefined {
    return this.#values.get(hash);
  }

  put(hash: number, value: Value): void {
    if (hash > this.#below) return;
    this.#values.set(hash, value);
    // Twice as many are held between, so that cutting is rare.
    if (this.#values.size > 2 * this.#max) this.#cut();
  }

  /** By hash; and the hash up to which they are all there are. */
  read(): { entries: [hash: number, value: Value][]; below: number } {
    if (this.#values.size > this.#max) this.#cut();
    return { entries: [...this.#values].sort(([a], [b]) => a - b), below: this.#below };
  }

  #cut(): void {
    const hashes = Float64Array.from(this.#values.keys()).sort();
    this.#below = hashes[this.#max - 1]!;
    for (const hash of hashes.subarray(this.#max)) this.#values.delete(hash);
  }
}
