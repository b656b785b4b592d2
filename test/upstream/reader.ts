import type { Socket } from 'node:net';
import { systemClock } from '../../src/kernel/clock.ts';

/** Bytes of a socket, read as they are asked for. It always reads on, so that the other side's leaving is seen at once. */
export class ByteReader {
  ended = false;
  endedAtMs: number | undefined;
  onEnd: (() => void) | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #wake: (() => void) | undefined;

  constructor(socket: Socket) {
    const end = () => this.#end();
    socket.on('data', (piece: Buffer) => {
      this.#bytes = this.#bytes.length === 0 ? piece : Buffer.concat([this.#bytes, piece]);
      this.#wake?.();
    });
    socket.on('end', end);
    socket.on('close', end);
    socket.on('error', end); // a reset is one of the ways to leave
  }

  /** Up to and with `mark`; undefined when the other side left before it came. */
  async through(mark: string): Promise<Buffer | undefined> {
    for (;;) {
      const at = this.#bytes.indexOf(mark, 0, 'latin1');
      if (at >= 0) return this.#take(at + mark.length);
      if (!(await this.#more())) return undefined;
    }
  }

  /** Exactly `count` bytes; undefined when the other side left before they came. */
  async exactly(count: number): Promise<Buffer | undefined> {
    while (this.#bytes.length < count) if (!(await this.#more())) return undefined;
    return this.#take(count);
  }

  #take(count: number): Buffer {
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  async #more(): Promise<boolean> {
    if (this.ended) return false;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
    return !this.ended || this.#bytes.length > 0;
  }

  #end(): void {
    if (this.ended) return;
    this.ended = true;
    this.endedAtMs = systemClock.mono();
    this.#wake?.();
    this.onEnd?.();
  }
}
