import type { Socket } from 'node:net';

const CONTINUE = Buffer.from('HTTP/1.1 100');
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * undici takes a `100 Continue` that it did not ask for as a broken answer, while RFC 9110 (15.2) lets any server send
 * one. This leaves such an answer out of what is read from the socket while `awaitsHead`; a body is never touched.
 */
export function skipContinue(socket: Socket, awaitsHead: () => boolean): void {
  const read = socket.read.bind(socket);
  let held: Buffer | undefined;
  socket.read = (size?: number) => {
    let piece = read(size) as Buffer | null;
    if (piece === null || !awaitsHead()) return piece;
    if (held) {
      piece = Buffer.concat([held, piece]);
      held = undefined;
    }
    while (startsLike(piece)) {
      const end = piece.length >= CONTINUE.length ? piece.indexOf(HEAD_END) : -1;
      if (end < 0) {
        held = piece;
        return socket.read();
      }
      piece = piece.subarray(end + HEAD_END.length);
      if (piece.length === 0) return socket.read();
    }
    return piece;
  };
}

/** Whether `piece` begins with the head of a 100, or is too short to tell. */
function startsLike(piece: Buffer): boolean {
  if (piece[0] !== 0x48) return false;
  const length = Math.min(piece.length, CONTINUE.length);
  return length > 0 && piece.compare(CONTINUE, 0, length, 0, length) === 0;
}
