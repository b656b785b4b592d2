import type { IncomingMessage } from 'node:http';
import type { BufferBudget } from '../buffer-budget.ts';

/** Why a body was not read: it is larger than one may be, or there is no room for it now. */
export type BodyRefusal = 'too-large' | 'no-room';

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
  const pieces: Buffer[] = [];
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
      pieces.push(piece);
    }
  });
  request.on('end', () => {
    if (over) return;
    over = true;
    callback(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces), release);
  });
  request.on('close', () => {
    if (over) return;
    over = true;
    release();
  });
}
