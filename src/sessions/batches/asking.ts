import type { Exchange, InnerAsk, InnerSink, InnerTerms, Path } from '../../gateway/contracts.ts';

/** The answer that a line was given. */
export interface LineAnswer {
  status: number;
  body: Buffer;
  /** Why it was given up: it was longer than one may be, or there was no room for it among the worker's buffers. */
  givenUp: 'too-long' | 'no-room' | undefined;
  /** Bytes of it that count among those buffers: to be given back. */
  held: number;
}

/** What one answer may have. */
export const ANSWER_BYTES_MAX = 64 * 2 ** 20;

/** Asks one line of the path, as a request of its tenant at batch priority, and gathers what it is answered. */
export class LineAsk implements InnerSink {
  readonly terms: InnerTerms;
  readonly #ask: InnerAsk;
  readonly #buffers: Path['deps']['buffers'];
  #status = 0;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #givenUp: LineAnswer['givenUp'];

  /** `onOver` may be called before this returns. */
  constructor(
    path: Path,
    { endpoint, body, tenant }: { endpoint: string; body: Buffer; tenant: string },
    onOver: (x: Exchange, answer: LineAnswer) => void,
  ) {
    this.#buffers = path.deps.buffers;
    this.terms = {
      tenant,
      charged: 'request',
      priority: 'batch',
      deadlineAt: undefined,
      ladder: false,
      session: undefined,
      onOver: (x) =>
        onOver(x, {
          status: this.#status,
          body: Buffer.concat(this.#pieces),
          givenUp: this.#givenUp,
          held: this.#bytes,
        }),
    };
    this.#ask = path.ask({ target: endpoint, body, terms: this.terms }, this);
  }

  /** Nobody wants the answer any more. */
  leave(): void {
    this.#ask.leave();
  }

  whole(status: number, _headers: string[], body: Buffer): void {
    this.#status = status;
    this.#pieces = [body];
  }

  open(status: number): void {
    this.#status = status;
  }

  piece(bytes: Buffer | string): boolean {
    if (this.#givenUp) return true;
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    if (this.#bytes + piece.length > ANSWER_BYTES_MAX) this.#giveUp('too-long');
    else if (!this.#buffers.take(piece.length)) this.#giveUp('no-room');
    else {
      this.#bytes += piece.length;
      this.#pieces.push(piece);
    }
    return true;
  }

  #giveUp(why: LineAnswer['givenUp']): void {
    this.#givenUp = why;
    this.#pieces = [];
    this.leave();
  }

  end(): void {}

  broken(): void {
    this.#pieces = [];
  }
}
