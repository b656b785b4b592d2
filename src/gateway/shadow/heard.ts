import type { BufferBudget } from '../buffer-budget.ts';
import type { AnswerListener, HeardAnswer, UpstreamHeaders } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { JSON_BYTES } from '../whole-carrier.ts';
import type { SkipCause } from './contracts.ts';

/** The longest answer that is held for a comparison, in bytes as it came; events of streams are longer than their words. */
const COMPARED_BYTES_MAX = 1024 * 1024;

/** Where what is held is taken from. */
type Room = Pick<BufferBudget, 'take' | 'give'>;

/**
 * Hears one answer and holds it until both sides of a pair are there. It takes the pieces as they are, so that whoever gets
 * the answer waits for nothing; what they take comes out of the room that it is given.
 */
export class Heard implements AnswerListener {
  /** Why it will never be whole. */
  cause: SkipCause | undefined;
  readonly #x: Exchange;
  readonly #budget: Room;
  readonly #next: AnswerListener | undefined;
  #pieces: Buffer[] = [];
  #held = 0;
  #jsonBytes: string | undefined;
  #whole = false;
  #over = false;

  /** `next`: who listened before, and goes on listening. */
  constructor(x: Exchange, budget: Room, next?: AnswerListener) {
    this.#x = x;
    this.#budget = budget;
    this.#next = next;
  }

  whole(status: number, headers: UpstreamHeaders, body: Buffer): void {
    this.#next?.whole(status, headers, body);
    const coding = headers['content-encoding'];
    if (coding !== undefined && coding !== 'identity') this.#giveUp('encoded');
    if (!this.#take(body.length)) return;
    const jsonBytes = headers[JSON_BYTES];
    if (typeof jsonBytes === 'string') this.#jsonBytes = jsonBytes;
    this.#pieces.push(body);
    this.#whole = true;
  }

  piece(bytes: Buffer | string): void {
    this.#next?.piece(bytes);
    if (this.#over) return;
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    // Of a long document that came in pieces the headers are not known here: raw tensors could not be told from JSON.
    if (!this.#x.streaming && this.#x.call!.protocol === 'oip') this.#giveUp('too-long');
    else if (this.#take(piece.length)) this.#pieces.push(piece);
  }

  done(): void {
    this.#next?.done();
    this.#whole = !this.#over;
  }

  /** Once it is whole; it is put together only when it is asked for. */
  get answer(): HeardAnswer | undefined {
    if (!this.#whole) return undefined;
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    const [body = Buffer.alloc(0)] = this.#pieces;
    return { body, streamed: this.#x.streaming, jsonBytes: this.#jsonBytes };
  }

  get isWhole(): boolean {
    return this.#whole;
  }

  /** Nothing is wanted of it any more: what it holds is given back. */
  release(): void {
    this.#over = true;
    this.#whole = false;
    this.#pieces = [];
    this.#budget.give(this.#held);
    this.#held = 0;
  }

  #take(bytes: number): boolean {
    if (this.#over) return false;
    const tooLong = this.#held + bytes > COMPARED_BYTES_MAX;
    if (tooLong || !this.#budget.take(bytes)) {
      this.#giveUp(tooLong ? 'too-long' : 'no-room');
      return false;
    }
    this.#held += bytes;
    return true;
  }

  #giveUp(cause: SkipCause): void {
    this.cause ??= cause;
    this.release();
  }
}
