import type { FileHandle } from 'node:fs/promises';

const READ_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Where a line of a file stands, without its end. */
export interface LinePlace {
  /** From 0; empty lines have a number as well. */
  line: number;
  offset: number;
  length: number;
}

export interface FileLine extends LinePlace {
  /** Undefined: it is longer than a line may be. */
  bytes: Buffer | undefined;
}

/**
 * Reads a file line by line, holding no more of it than the longest line that may be. Lines end with LF or CRLF, the last one
 * also with the file; a byte order mark before the first one, and lines of white space alone, are passed over.
 */
export class LineReader {
  readonly #handle: FileHandle;
  readonly #bytesMax: number;
  #pending: Buffer = Buffer.alloc(0);
  /** Offset in the file of what is pending. */
  #from = 0;
  /** Bytes of what is pending that have no end of line in them. */
  #scanned = 0;
  #line = 0;
  #ended = false;

  constructor(handle: FileHandle, bytesMax: number) {
    this.#handle = handle;
    this.#bytesMax = bytesMax;
  }

  /** Undefined after the last one. */
  async next(): Promise<FileLine | undefined> {
    for (;;) {
      const end = this.#pending.indexOf(NEWLINE, this.#scanned);
      if (end >= 0) {
        const found = this.#cut(end, end + 1);
        if (found) return found;
        continue;
      }
      this.#scanned = this.#pending.length;
      if (this.#ended) return this.#pending.length > 0 ? this.#cut(this.#pending.length) : undefined;
      if (this.#pending.length > this.#bytesMax) return this.#skip();
      await this.#read();
    }
  }

  async #read(): Promise<void> {
    // As much again as is pending already, so that a long line is not copied over and over.
    const size = Math.max(READ_BYTES, this.#pending.length);
    const piece = Buffer.allocUnsafeSlow(size);
    const { bytesRead } = await this.#handle.read(piece, 0, size, this.#from + this.#pending.length);
    if (bytesRead === 0) this.#ended = true;
    const read = piece.subarray(0, bytesRead);
    this.#pending = this.#pending.length === 0 ? read : Buffer.concat([this.#pending, read]);
    if (this.#from === 0 && this.#pending.subarray(0, BOM.length).equals(BOM)) {
      this.#pending = this.#pending.subarray(BOM.length);
      this.#from = BOM.length;
      this.#scanned = 0;
    }
  }

  /** The line before `end`, which goes on at `next`; undefined for an empty one. */
  #cut(end: number, next = end): FileLine | undefined {
    const bytes = this.#pending.subarray(0, end);
    const place = { line: this.#line++, offset: this.#from, length: bytes.length };
    this.#pending = this.#pending.subarray(next);
    this.#from += next;
    this.#scanned = 0;
    if (isBlank(bytes)) return undefined;
    return { ...place, bytes: bytes.length > this.#bytesMax ? undefined : bytes };
  }

  /** Passes over a line that is too long to be held. */
  async #skip(): Promise<FileLine> {
    const offset = this.#from;
    for (;;) {
      const end = this.#pending.indexOf(NEWLINE);
      if (end >= 0 || this.#ended) {
        const length = this.#from + (end < 0 ? this.#pending.length : end) - offset;
        this.#cut(end < 0 ? this.#pending.length : end, end < 0 ? this.#pending.length : end + 1);
        return { line: this.#line - 1, offset, length, bytes: undefined };
      }
      this.#from += this.#pending.length;
      this.#pending = Buffer.alloc(0);
      await this.#read();
    }
  }
}

function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x0d && byte !== 0x09) return false;
  return true;
}

/** Numbers of lines, a bit each. */
export class LineSet {
  #bits = new Uint8Array(1024);

  add(line: number): void {
    const at = line >> 3;
    if (at >= this.#bits.length) {
      const more = new Uint8Array(Math.max(at + 1, this.#bits.length * 2));
      more.set(this.#bits);
      this.#bits = more;
    }
    this.#bits[at]! |= 1 << (line & 7);
  }

  has(line: number): boolean {
    return ((this.#bits[line >> 3] ?? 0) & (1 << (line & 7))) !== 0;
  }
}
