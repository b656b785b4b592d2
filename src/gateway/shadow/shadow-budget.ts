import type { BufferBudget } from '../buffer-budget.ts';

/** Of the room for all bodies and buffers, what copies may hold together: one that hangs must not leave callers without. */
const SHARE = 1 / 4;

/** Bytes that copies and the comparing of their answers hold. */
export class ShadowBudget {
  readonly #all: BufferBudget;
  #held = 0;

  constructor(all: BufferBudget) {
    this.#all = all;
  }

  /** False where there is no room. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#all.bytesMax * SHARE || !this.#all.take(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
    this.#all.give(bytes);
  }
}
