import type { Socket } from 'node:net';

/** The longest line that is read, in bytes; a longer one ends the connection. */
export const LINE_BYTES_MAX = 64 * 2 ** 20;
/** What may wait for a peer that does not read, in characters; beyond it the connection ends. */
const OUTGOING_MAX = 128 * 2 ** 20;

const NEWLINE = 10;

/** Every message is an object that says what it is. */
export interface Message {
  type: string;
}

/**
 * JSON lines over one connection. Whatever goes wrong (a line that is too long or no message, a peer that does not read,
 * a handler that throws) ends this connection and nothing else: both sides tell each other everything anew when they
 * connect again.
 */
export class Link<In extends Message, Out extends Message> {
  onMessage: ((message: In) => void) | undefined;
  /** Called once. `fault` is what went wrong, where the connection did not simply end. */
  onClose: ((fault: Error | undefined) => void) | undefined;

  readonly #socket: Socket;
  #fault: Error | undefined;
  #ended = false;
  #pieces: Buffer[] = [];
  #piecesBytes = 0;
  #lines: string[] = [];
  #linesLength = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (piece: Buffer) => this.#read(piece));
    socket.on('error', (error: Error) => {
      this.#fault ??= error;
    });
    socket.on('close', () => {
      this.#ended = true;
      this.onClose?.(this.#fault);
    });
  }

  /** False once the connection has ended or is ending: the message goes nowhere then. */
  send(message: Out): boolean {
    if (this.#ended) return false;
    const line = JSON.stringify(message);
    if (this.#linesLength + this.#socket.writableLength + line.length > OUTGOING_MAX) {
      this.#fail(new Error(`the peer left ${OUTGOING_MAX} characters unread`));
      return false;
    }
    // All messages of one turn of the loop leave in one write.
    if (this.#lines.length === 0) setImmediate(() => this.#flush());
    this.#lines.push(line);
    this.#linesLength += line.length;
    return true;
  }

  /** Characters that have been sent and not yet taken by the kernel. */
  get waiting(): number {
    return this.#linesLength + this.#socket.writableLength;
  }

  /** Ends the connection after what was sent has left. */
  close(): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    this.#socket.end();
    // A peer that keeps its half open must not keep ours.
    this.#socket.on('finish', () => this.#socket.destroy());
  }

  #flush(): void {
    if (this.#lines.length === 0 || this.#socket.destroyed) return;
    this.#lines.push('');
    this.#socket.write(this.#lines.join('\n'));
    this.#lines = [];
    this.#linesLength = 0;
  }

  #read(piece: Buffer): void {
    let from = 0;
    for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, from)) {
      this.#line(piece.subarray(from, at));
      if (this.#ended) return;
      from = at + 1;
    }
    if (from === piece.length) return;
    this.#pieces.push(from === 0 ? piece : piece.subarray(from));
    this.#piecesBytes += piece.length - from;
    if (this.#piecesBytes > LINE_BYTES_MAX)
      this.#fail(new Error(`a line is longer than ${LINE_BYTES_MAX} bytes`));
  }

  #line(last: Buffer): void {
    let bytes = last;
    if (this.#pieces.length > 0) {
      bytes = Buffer.concat([...this.#pieces, last]);
      this.#pieces = [];
      this.#piecesBytes = 0;
    }
    try {
      const message = JSON.parse(bytes.toString()) as In;
      if (typeof message !== 'object' || message === null || typeof message.type !== 'string') {
        throw new Error('a line is no message');
      }
      this.onMessage?.(message);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #fail(fault: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#fault ??= fault;
    this.#pieces = [];
    this.#lines = [];
    this.#linesLength = 0;
    this.#socket.destroy();
  }
}
