/**
 * Cuts a server-sent event stream into whole events, whatever the pieces it comes in. An event is given as the bytes it
 * was sent in, its closing blank line included; where it lies within one piece it is not copied. Lines end with LF or
 * CRLF, mixed as they like. Linear in the bytes, however small the pieces.
 */
export class EventSplitter {
  #carry: Buffer[] = [];
  #carried = 0;
  /** The line that is being read has bytes already. */
  #lineBegun = false;
  /** A CR ended the last piece: part of a line end when an LF follows. */
  #crHeld = false;

  /** Bytes of an event that has not ended yet. */
  get held(): number {
    return this.#carried;
  }

  /** The events that end in this piece. */
  push(piece: Buffer): Buffer[] {
    const events: Buffer[] = [];
    let start = 0;
    let line = 0;
    for (;;) {
      const end = piece.indexOf(0x0a, line);
      if (end < 0) break;
      const length = end - line;
      const blank =
        length === 0
          ? !this.#lineBegun
          : length === 1 && piece[line] === 0x0d && !this.#lineBegun && !this.#crHeld;
      this.#lineBegun = false;
      this.#crHeld = false;
      line = end + 1;
      if (blank) {
        events.push(this.#take(piece.subarray(start, line)));
        start = line;
      }
    }
    if (line < piece.length) this.#open(piece, line);
    if (start < piece.length) {
      this.#carry.push(piece.subarray(start));
      this.#carried += piece.length - start;
    }
    return events;
  }

  /** Notes what is known of the line that the piece leaves open. */
  #open(piece: Buffer, line: number): void {
    const loneCr = piece.length - line === 1 && piece[line] === 0x0d;
    if (loneCr && !this.#lineBegun && !this.#crHeld) this.#crHeld = true;
    else {
      this.#lineBegun = true;
      this.#crHeld = false;
    }
  }

  #take(tail: Buffer): Buffer {
    if (this.#carry.length === 0) return tail;
    const event = Buffer.concat([...this.#carry, tail]);
    this.#carry = [];
    this.#carried = 0;
    return event;
  }
}
