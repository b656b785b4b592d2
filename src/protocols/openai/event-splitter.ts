const LF = 0x0a;
const CR = 0x0d;

/**
 * Cuts a server-sent event stream into whole events, whatever the pieces it comes in. An event is given as the bytes it
 * was sent in, its closing blank line included; where it lies within one piece it is not copied. Lines end with LF, CRLF
 * or CR, mixed as they like; a byte order mark before the first is left out. Linear in the bytes, however small the
 * pieces.
 */
export class EventSplitter {
  #carry: Buffer[] = [];
  #carried = 0;
  /** The line that is being read has bytes already. */
  #lineBegun = false;
  /** A CR ended the last piece: a line end, alone or with the LF that may follow. */
  #crHeld = false;
  /** That CR has been taken for a line end already: an LF that follows is a part of it. */
  #lfBelongs = false;
  /** A CR has ended a line alone: this stream need not be waited for to send an LF. */
  #crAlone = false;
  #first = true;

  /** Bytes of an event that has not ended yet. */
  get held(): number {
    return this.#carried;
  }

  /** The events that end in this piece. */
  push(piece: Buffer): Buffer[] {
    const events: Buffer[] = [];
    let start = 0;
    let line = 0;
    let lf = piece.indexOf(LF);
    let cr = piece.indexOf(CR);
    if (this.#crHeld && piece.length > 0) {
      this.#crHeld = false;
      if (piece[0] !== LF) {
        this.#crAlone = true;
        if (this.#endLine(0)) events.push(this.#take(piece.subarray(0, 0)));
      }
    }
    if (this.#lfBelongs && piece.length > 0) {
      this.#lfBelongs = false;
      if (piece[0] === LF) line = 1;
    }
    for (;;) {
      if (lf >= 0 && lf < line) lf = piece.indexOf(LF, line);
      if (cr >= 0 && cr < line) cr = piece.indexOf(CR, line);
      let end = lf;
      let next = lf + 1;
      if (cr >= 0 && (lf < 0 || cr < lf)) {
        if (cr + 1 === piece.length) {
          this.#crHeld = !this.#crAlone;
          this.#lfBelongs = this.#crAlone;
          if (this.#crHeld) break;
        }
        end = cr;
        if (lf !== cr + 1) {
          this.#crAlone = true;
          next = cr + 1;
        }
      } else if (lf < 0) break;
      const blank = this.#endLine(end - line);
      line = next;
      if (blank) {
        events.push(this.#take(piece.subarray(start, line)));
        start = line;
      }
    }
    if (line < piece.length - (this.#crHeld ? 1 : 0)) this.#lineBegun = true;
    if (start < piece.length) {
      this.#carry.push(piece.subarray(start));
      this.#carried += piece.length - start;
    }
    return events;
  }

  /** True when the line that ends was blank; `bytes` of it lie in the present piece. */
  #endLine(bytes: number): boolean {
    const blank = bytes === 0 && !this.#lineBegun;
    this.#lineBegun = false;
    return blank;
  }

  #take(tail: Buffer): Buffer {
    let event = tail;
    if (this.#carry.length > 0) {
      event = Buffer.concat([...this.#carry, tail]);
      this.#carry = [];
      this.#carried = 0;
    }
    if (!this.#first) return event;
    this.#first = false;
    return event[0] === 0xef && event[1] === 0xbb && event[2] === 0xbf ? event.subarray(3) : event;
  }
}
