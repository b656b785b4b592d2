/** Bytes of bodies and buffers that one worker holds, together never above `bytesMax`. */
export class BufferBudget {
  bytesMax = Number.POSITIVE_INFINITY;
  #held = 0;

  get held(): number {
    return this.#held;
  }

  /** False when there is no room. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.bytesMax) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}
