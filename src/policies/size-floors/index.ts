/** How fast a floor follows answers that are slower than it: time constant in milliseconds. */
const FORGET_MS = 30_000;
/** Share of the way that a floor goes down to an answer that is faster than it. */
const DOWN = 0.5;
/** Classes by size: each is twice as large as the one before it. */
const SIZES = 20;
/** The longest pause that is counted as one of its class, so that one slow answer after a quiet night is not believed. */
const PAUSE_MS_MAX = 1_000;

/**
 * What requests of one size take at least, learned from all of them: a low percentile of each class that is forgotten
 * slowly. One class for each doubling.
 */
export class SizeFloors {
  readonly #floors = new Float64Array(SIZES);
  readonly #seenAt = new Float64Array(SIZES);

  /** The floor of the class of `size`, in the unit of `value`, after that has been taken in. */
  observe(value: number, size: number, now: number): number {
    const index = Math.min(SIZES - 1, 31 - Math.clz32(size + 1));
    const floor = this.#floors[index]!;
    const pauseMs = now - this.#seenAt[index]!;
    this.#seenAt[index] = now;
    if (floor === 0) this.#floors[index] = value;
    else if (value < floor) this.#floors[index] = floor + DOWN * (value - floor);
    else {
      const part = Math.min(pauseMs, PAUSE_MS_MAX) / FORGET_MS;
      this.#floors[index] = floor + Math.min(part, DOWN) * (value - floor);
    }
    return this.#floors[index]!;
  }
}
