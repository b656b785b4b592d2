import type { Exchange, InnerAsk, InnerSink, InnerTerms, Path } from '../../gateway/contracts.ts';

/** The answer that a line was given. */
export interface LineAnswer {
  status: number;
  body: Buffer;
}

/** Asks one line of the path, as a request of its tenant at batch priority, and gathers what it is answered. */
export class LineAsk implements InnerSink {
  readonly terms: InnerTerms;
  readonly #ask: InnerAsk;
  #status = 0;
  #pieces: Buffer[] = [];

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
      onOver: (x) => onOver(x, { status: this.#status, body: Buffer.concat(this.#pieces) }),
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
    this.#pieces.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
    return true;
  }

  end(): void {}

  broken(): void {
    this.#pieces = [];
  }
}
