import {
  type Exchange,
  type HeaderList,
  type InnerAsk,
  type InnerSink,
  isStream,
  type Path,
  type Route,
} from '../gateway/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import type { StageAsk } from './kinds/contracts.ts';

/** The longest answer of a stage. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const EMPTY = Buffer.alloc(0);

/** What came of asking a route once. */
export interface CallEnd {
  /** The request as it went through the path; undefined where it was not sent at all. */
  inner: Exchange | undefined;
  tookMs: number;
  /** Undefined where the route gave an answer, which is in `body` unless it was passed on as a stream. */
  failure: Failure | undefined;
  /** Its words went to the taker: they were judged on their way. */
  passedOn: boolean;
  headers: HeaderList;
  body: Buffer;
}

/** Takes the answer of a last stage as it comes. */
export interface StreamTaker {
  /** Its first content is there: from now on this is the answer. */
  open(headers: HeaderList): void;
  /** False: no more until `resume`. */
  piece(bytes: Buffer | string): boolean;
}

export interface CallOptions {
  path: Path;
  /** The request of the caller. */
  x: Exchange;
  ask: StageAsk;
  /** A chat, which is made to fit the window of the backend that it goes to. */
  fit: boolean;
  /** The routes that there were when the pipeline's request came. */
  routes: ReadonlyMap<string, Route>;
  /** Monotonic. */
  deadlineAt: number;
  /** Where the stage may pass its words on as they come. */
  taker: StreamTaker | undefined;
  done(end: CallEnd): void;
}

/** One request of a stage to a route, through the whole path. */
export class StageCall implements InnerSink {
  readonly #options: CallOptions;
  readonly #startedAt: number;
  #ask: InnerAsk | undefined;
  #inner: Exchange | undefined;
  #over = false;
  #passesOn = false;
  #headers: HeaderList = [];
  #pieces: Buffer[] = [];
  /** Bytes of the answer, for which room is taken. */
  #bytes = 0;
  #asked = 0;
  /** There was no room for all of the answer. */
  #tooLong = false;

  constructor(options: CallOptions) {
    this.#options = options;
    this.#startedAt = options.path.deps.clock.mono();
  }

  /** `done` may be called before this returns. */
  start(): void {
    const { path, x, ask, deadlineAt } = this.#options;
    if (!path.deps.buffers.take(ask.body.length)) {
      this.#end(undefined, noRoom());
      return;
    }
    this.#asked = ask.body.length;
    const { terms } = x;
    const sent = path.ask(
      {
        target: ask.target,
        body: ask.body,
        ...(ask.headers === undefined ? {} : { headers: ask.headers }),
        terms: {
          tenant: x.tenant,
          charged: 'stage',
          priority: x.priority,
          deadlineAt,
          ladder: terms?.ladder !== false,
          session: x.session,
          ids: { id: x.id, requestId: x.requestId },
          traceparent: x.traceparent,
          routes: this.#options.routes,
          fit: this.#options.fit,
          onOver: (inner) => this.#onOver(inner),
        },
      },
      this,
    );
    if (!this.#over) this.#ask = sent;
  }

  /** Nobody wants its answer any more. Gives back how far it had come. */
  cancel(): Exchange | undefined {
    if (this.#over) return undefined;
    this.#over = true;
    this.#giveBack();
    this.#ask?.leave();
    return this.#inner;
  }

  resume(): void {
    this.#ask?.resume();
  }

  whole(_status: number, headers: HeaderList, body: Buffer): void {
    if (this.#over) return;
    this.#headers = headers;
    this.#hold(body);
  }

  open(_status: number, headers: HeaderList): void {
    if (this.#over) return;
    this.#headers = headers;
    const { taker } = this.#options;
    if (!taker || !isStream(headers)) return; // a document too long to be held is gathered here
    this.#passesOn = true;
    taker.open(headers);
  }

  piece(bytes: Buffer | string): boolean {
    if (this.#over) return true;
    if (this.#passesOn) return this.#options.taker!.piece(bytes);
    this.#hold(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
    return true;
  }

  /** Whether it was whole is told by how the request ended: see `#onOver`. */
  end(): void {}
  broken(): void {}

  #hold(bytes: Buffer): void {
    const room =
      !this.#tooLong &&
      this.#bytes + bytes.length <= ANSWER_BYTES_MAX &&
      this.#options.path.deps.buffers.take(bytes.length);
    if (!room) {
      this.#tooLong = true;
      return;
    }
    this.#bytes += bytes.length;
    this.#pieces.push(bytes);
  }

  #onOver(inner: Exchange): void {
    this.#inner = inner;
    if (this.#over) return;
    const answered = inner.outcome === 'ok' || inner.outcome === 'degraded';
    if (answered) this.#end(inner, this.#tooLong ? noRoom() : undefined);
    else this.#end(inner, inner.failure ?? noAnswer());
  }

  #end(inner: Exchange | undefined, failure: Failure | undefined): void {
    this.#over = true;
    const pieces = this.#pieces;
    const body = failure ? EMPTY : pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    this.#giveBack();
    this.#options.done({
      inner,
      tookMs: this.#options.path.deps.clock.mono() - this.#startedAt,
      failure,
      passedOn: this.#passesOn,
      headers: this.#headers,
      body,
    });
  }

  #giveBack(): void {
    this.#options.path.deps.buffers.give(this.#bytes + this.#asked);
    this.#bytes = this.#asked = 0;
    this.#pieces = [];
  }
}

function noRoom(): Failure {
  return {
    code: 'overloaded',
    message: 'There is no room for its answer now.',
    phase: 'sent',
    retryAfterSeconds: 1,
  };
}

export function noAnswer(): Failure {
  return {
    code: 'backend_error',
    message: 'The engine answered with something that is no answer.',
    phase: 'sent',
  };
}
