import { Scope } from '../kernel/scope.ts';
import type { Caller, HeaderList, InnerAsk, InnerRequest, InnerSink, InnerTerms } from './contracts.ts';

/** The caller's side of a request that the gateway makes itself: a stage of a pipeline, a line of a batch. */
export class InnerCaller implements Caller, InnerAsk {
  readonly method = 'POST';
  readonly target: string;
  readonly body: Buffer;
  readonly terms: InnerTerms;
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #sink: InnerSink;
  readonly #untilClosed = new Scope();

  constructor({ target, body, headers, terms }: InnerRequest, sink: InnerSink) {
    this.target = target;
    this.body = body;
    this.terms = terms;
    this.#headers = headers ?? { 'content-type': 'application/json' };
    this.#sink = sink;
  }

  header(name: string): string | undefined {
    return this.#headers[name];
  }

  headerCount(name: string): number {
    return this.#headers[name] === undefined ? 0 : 1;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    if (this.#untilClosed.closed) return;
    this.#sink.whole(status, headers, typeof body === 'string' ? Buffer.from(body) : body);
    this.#untilClosed.close();
  }

  open(status: number, headers: HeaderList): void {
    this.#sink.open(status, headers);
  }

  write(piece: Buffer | string): boolean {
    return this.#untilClosed.closed || this.#sink.piece(piece);
  }

  end(): void {
    if (this.#untilClosed.closed) return;
    this.#sink.end();
    this.#untilClosed.close();
  }

  destroy(): void {
    if (this.#untilClosed.closed) return;
    this.#sink.broken();
    this.#untilClosed.close();
  }

  whenClosed(run: () => void): void {
    this.#untilClosed.add(run);
  }

  leave(): void {
    this.onGone?.();
    this.#untilClosed.close();
  }

  resume(): void {
    this.onDrain?.();
  }
}
