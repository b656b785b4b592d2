import type { Failure } from '../../kernel/errors.ts';
import { headerOf, tell } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { descend } from '../ladder.ts';
import type { Path } from '../path.ts';
import type { Asked } from './asked.ts';
import type { Waiting } from './former.ts';

/** Of so many of its batches each step is told in its record; of the rest it is only told that they were. */
const TOLD_MAX = 8;

/** Tokens of one text of a request. */
export interface Row extends Waiting {
  readonly member: Member;
  /** Which of its request's texts it is. */
  readonly at: number;
  readonly ids: Int32Array;
  /** Monotonic: when it came to wait for others. */
  readonly joinedAt: number;
}

/** What came back of one text: an embedding's JSON, a vector, or its row of each output. */
export type RowAnswer = string | Float32Array | readonly Buffer[];

/** What is the same for all rows of an answer. */
export interface Frame {
  headers: HeaderList;
  /** Of embeddings on OpenAI's API: the document around the rows. */
  document: Buffer | undefined;
  /** Of an inference: its outputs without their rows. */
  outputs: readonly { name: string; datatype: string; row: readonly number[] }[];
}

/** A request whose texts go upstream among those of others: it has its answer when all of them have come back. */
export class Member {
  readonly x: Exchange;
  readonly asked: Asked;
  readonly tokens: readonly number[];
  readonly #path: Path;
  readonly #onOver: (member: Member) => void;
  readonly #rows: RowAnswer[] = [];
  #left: number;
  #held = 0;
  #told = 0;
  #upstreamSince = 0;
  /** It wants nothing any more: answered, failed, or its caller has left. */
  over = false;

  constructor(
    path: Path,
    x: Exchange,
    asked: Asked,
    tokens: readonly number[],
    onOver: (member: Member) => void,
  ) {
    this.#path = path;
    this.x = x;
    this.asked = asked;
    this.tokens = tokens;
    this.#onOver = onOver;
    this.#left = tokens.length;
    x.scope.add(() => this.#end());
  }

  /** Of all its texts. */
  get tokensIn(): number {
    return this.tokens.reduce((sum, count) => sum + count, 0);
  }

  /** Takes room for what it holds until it is over; false where there is none. */
  hold(bytes: number): boolean {
    if (!this.#path.deps.buffers.take(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  /** A batch with rows of it goes upstream. */
  sent(now: number, joinedAt: number): void {
    if (this.#upstreamSince !== 0) return;
    this.#upstreamSince = now;
    this.x.waitedMs += now - joinedAt;
  }

  /** Tells its record what came of one of its batches. */
  hear(carrier: Exchange): void {
    if (this.#told++ >= TOLD_MAX) return;
    const { x } = this;
    const { upstreamMs } = x;
    tell(this.#path, carrier, x, 0);
    // Its batches ran side by side: what it waited for them is reckoned once, when the last is back.
    x.upstreamMs = upstreamMs;
    x.degraded = undefined;
  }

  /** One text is back; gives all of them when it was the last. */
  took(at: number, answer: RowAnswer): readonly RowAnswer[] | undefined {
    this.#rows[at] = answer;
    if (--this.#left > 0) return undefined;
    this.#backFromUpstream();
    return this.#rows;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    const { x } = this;
    x.outcome = 'ok';
    x.status = status;
    x.firstContentAt = this.#path.deps.clock.mono();
    x.tokensIn = this.tokensIn;
    x.tokensOut = 0;
    const bytes = Buffer.from(body as string);
    this.#path.addHeaders(x, headers);
    x.listener?.whole(status, { 'content-type': headerOf(headers, 'content-type') }, bytes);
    x.caller.respond(status, headers, bytes);
    this.#path.finish(x);
  }

  /** The engine's own words about this request. */
  respondRefused(status: number, headers: HeaderList, body: Buffer): void {
    const { x } = this;
    this.#backFromUpstream();
    x.status = status;
    x.outcome = 'invalid';
    this.#path.addHeaders(x, headers);
    x.caller.respond(status, headers, body);
    this.#path.finish(x);
  }

  refuse(failure: Failure): void {
    this.#end();
    this.#path.refuse(this.x, failure);
  }

  /** It has no answer this way: its ladder is walked. */
  fail(failure: Failure, shedFor: string | undefined): void {
    const { x } = this;
    if (this.over || x.over) return;
    this.#backFromUpstream();
    this.#end();
    x.failure = { ...failure, phase: x.phase };
    x.shedFor = shedFor;
    descend(this.#path, x);
  }

  #backFromUpstream(): void {
    if (this.#upstreamSince === 0) return;
    this.x.upstreamMs += this.#path.deps.clock.mono() - this.#upstreamSince;
    this.#upstreamSince = 0;
  }

  #end(): void {
    if (this.over) return;
    this.over = true;
    this.#path.deps.buffers.give(this.#held);
    this.#held = 0;
    this.#onOver(this);
  }
}
