/**
 * Ends a text before the first of the given strings that is complete in it, however it comes in pieces: what could be the
 * beginning of one is held back until the next piece decides.
 */
export class TextCutter {
  readonly #stops: readonly string[];
  #held = '';
  /** Nothing more will be let through. */
  stopped = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Gives what of the text so far is certain to come before any of the strings. */
  push(piece: string): string {
    if (this.stopped) return '';
    const text = this.#held + piece;
    const end = this.#firstStop(text);
    if (end >= 0) {
      this.stopped = true;
      this.#held = '';
      return text.slice(0, end);
    }
    const keep = this.#heldLength(text);
    this.#held = text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }

  /** Gives what was held back: the text has ended. */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /** Where the string begins that is complete first; of several, the longest. */
  #firstStop(text: string): number {
    let start = -1;
    let end = Number.POSITIVE_INFINITY;
    for (const stop of this.#stops) {
      const at = text.indexOf(stop);
      if (at < 0 || at + stop.length > end) continue;
      if (at + stop.length < end || at < start) start = at;
      end = at + stop.length;
    }
    return start;
  }

  /** The length of the longest end of `text` that begins one of the strings. */
  #heldLength(text: string): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (stop.startsWith(text.slice(text.length - length))) longest = length;
      }
    }
    return longest;
  }
}
