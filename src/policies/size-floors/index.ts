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
 * slowly. One class for each doubling of the prompt, and of the answer where whole answers are compared.
 */
export class SizeFloors {
  readonly #floors: Float64Array;
  readonly #seenAt: Float64Array;

  /** `answers`: classes by the length of the answer too. */
  constructor(answers: boolean) {
    const classes = answers ? SIZES * SIZES : SIZES;
    this.#floors = new Float64Array(classes);
    this.#seenAt = new Float64Array(classes);
  }

  /** The floor of the class that an answer belongs to, in the unit of `value`, after it has been taken in. */
  observe(value: number, sizeIn: number, sizeOut: number, now: number): number {
    const at = classOf(sizeOut) * SIZES + classOf(sizeIn);
    const index = this.#floors.length === SIZES ? at % SIZES : at;
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

  forget(): void {
    this.#floors.fill(0);
  }
}

function classOf(size: number): number {
  return Math.min(SIZES - 1, 31 - Math.clz32(size + 1));
}
