import type { Exchange, InnerAsk, InnerSink, InnerTerms, Path } from '../../gateway/contracts.ts';

/** The answer that a line was given. */
export interface LineAnswer {
  status: number;
  body: Buffer;
  /** It was longer than one may be, and given up. */
  tooLong: boolean;
}

/** What one answer may have. */
export const ANSWER_BYTES_MAX = 64 * 2 ** 20;

/** Asks one line of the path, as a request of its tenant at batch priority, and gathers what it is answered. */
export class LineAsk implements InnerSink {
  readonly terms: InnerTerms;
  readonly #ask: InnerAsk;
  #status = 0;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #tooLong = false;

  /** `onOver` may be called before this returns. */
  constructor(
    path: Path,
    { endpoint, body, tenant }: { endpoint: string; body: Buffer; tenant: string },
    onOver: (x: Exchange, answer: LineAnswer) => void,
  ) {
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
          tooLong: this.#tooLong,
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
    if (this.#tooLong) return true;
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    this.#bytes += piece.length;
    this.#pieces.push(piece);
    if (this.#bytes > ANSWER_BYTES_MAX) {
      this.#tooLong = true;
      this.#pieces = [];
      this.leave();
    }
    return true;
  }

  end(): void {}

  broken(): void {
    this.#pieces = [];
  }
}
