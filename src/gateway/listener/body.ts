import type { IncomingMessage } from 'node:http';
import type { BufferBudget } from '../buffer-budget.ts';

/** Why a body was not read: it is larger than one may be, or there is no room for it now. */
export type BodyRefusal = 'too-large' | 'no-room';

/** A piece below this is copied into a block with others: each object costs more than such a piece has bytes. */
const PIECE_BYTES_MIN = 1024;
const BLOCK_BYTES = 16 * 1024;

/** Gathers a body from its pieces. One that comes a byte at a time takes no more memory than one that comes at once. */
class Pieces {
  readonly #pieces: Buffer[] = [];
  #block = Buffer.alloc(0);
  /** What of the block belongs to no piece yet. */
  #from = 0;
  #to = 0;

  add(piece: Buffer): void {
    if (this.#pieces.length === 0 || piece.length >= PIECE_BYTES_MIN) {
      this.#closePiece();
      this.#pieces.push(piece);
      return;
    }
    if (this.#to + piece.length > this.#block.length) {
      this.#closePiece();
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#from = this.#to = 0;
    }
    this.#to += piece.copy(this.#block, this.#to);
  }

  whole(): Buffer {
    this.#closePiece();
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
  }

  #closePiece(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#block.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

/**
 * Reads a request's body whole, within `bytesMax` and the budget. Calls back once: with the body, or with why not; never
 * when the caller leaves before its end. What is held is given back by `release`.
 */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
  buffers: BufferBudget,
  callback: (result: Buffer | BodyRefusal, release: () => void) => void,
): void {
  let held = 0;
  const release = () => {
    buffers.give(held);
    held = 0;
  };
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > bytesMax) {
    callback('too-large', release);
    return;
  }
  const pieces = new Pieces();
  let over = false;
  const refuse = (why: BodyRefusal) => {
    over = true;
    release();
    callback(why, release);
  };
  request.on('data', (piece: Buffer) => {
    if (over) return;
    if (held + piece.length > bytesMax) refuse('too-large');
    else if (!buffers.take(piece.length)) refuse('no-room');
    else {
      held += piece.length;
      pieces.add(piece);
    }
  });
  request.on('end', () => {
    if (over) return;
    over = true;
    callback(pieces.whole(), release);
  });
  request.on('close', () => {
    if (over) return;
    over = true;
    release();
  });
}
