import { EventSplitter } from '../../protocols/openai/event-splitter.ts';
import { classify, eventData, eventName, inspect, type Usage } from '../../protocols/openai/events.ts';
import type { UpstreamHeaders } from '../contracts.ts';
import { type AttemptFailure, fromBrokenAnswer, fromErrorText } from '../dispatch/outcome.ts';
import type { Relay, RelayHost } from './contracts.ts';

/** Bytes held back before the commit point; beyond it the answer is committed as it is. */
const HELD_BYTES_MAX = 256 * 1024;
/** Bytes of an incomplete event for which no room is taken. */
const FREE_BYTES = 64 * 1024;
/** The largest event. */
const EVENT_BYTES_MAX = 32 * 1024 * 1024;

/**
 * A streamed answer. Frames without content are held until the first that has some: until then another endpoint can
 * still answer. After that whole events go on as they come, in the bytes they came in.
 */
export class StreamRelay implements Relay {
  readonly #host: RelayHost;
  readonly #headers: UpstreamHeaders;
  readonly #backend: string;
  /** The caller did not ask for the usage chunk: it was added for counting, and stays here. */
  readonly #hideUsage: boolean;
  /** Several choices: a finish reason is not the end of all of them. */
  readonly #severalChoices: boolean;
  readonly #splitter = new EventSplitter();
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Bytes of incomplete events that room was taken for. */
  #accounted = 0;
  #committed = false;
  #over = false;
  #finished = false;
  #done = false;
  #deltas = 0;
  #usage: Usage | undefined;

  constructor(
    host: RelayHost,
    headers: UpstreamHeaders,
    backend: string,
    options: { hideUsage: boolean; severalChoices: boolean },
  ) {
    this.#host = host;
    this.#headers = headers;
    this.#backend = backend;
    this.#hideUsage = options.hideUsage;
    this.#severalChoices = options.severalChoices;
  }

  onData(piece: Buffer): void {
    if (this.#over) return;
    const events = this.#splitter.push(piece);
    if (this.#committed) this.#forward(events, piece);
    else {
      for (let i = 0; i < events.length && !this.#over; i++) {
        if (this.#weigh(events[i]!)) {
          this.#forward(events.slice(i), undefined);
          break;
        }
      }
    }
    if (!this.#over && !this.#mayHold()) {
      this.onBroken(
        fromBrokenAnswer('event-too-large', `The backend '${this.#backend}' sent an event without an end.`),
      );
    }
  }

  /** Small events cost nothing; what a large one takes while it is incomplete comes out of the room for all. */
  #mayHold(): boolean {
    const { held } = this.#splitter;
    if (held <= FREE_BYTES) return true;
    if (held > EVENT_BYTES_MAX) return false;
    const more = held - this.#accounted;
    if (more <= 0) return true;
    this.#accounted = held;
    return this.#host.hold(more);
  }

  judge(): AttemptFailure | undefined {
    if (this.#over) return undefined;
    if (this.#splitter.held > 0) this.onData(Buffer.from('\n\n')); // an engine may leave out the last blank line
    if (this.#over || this.#done || (this.#committed && this.#finished && !this.#severalChoices))
      return undefined;
    return this.#committed
      ? fromBrokenAnswer('cut-stream', `The backend '${this.#backend}' ended its answer too early.`)
      : fromBrokenAnswer(
          'empty-stream',
          `The backend '${this.#backend}' ended its answer before the first word.`,
        );
  }

  onEnd(): void {
    if (this.#over) return;
    this.#over = true;
    if (!this.#committed) this.#commit();
    this.#count();
    this.#host.done();
  }

  onBroken(failure: AttemptFailure): void {
    if (this.#over) return;
    if (!this.#committed) {
      this.#fail(failure);
      return;
    }
    this.#over = true;
    this.#count();
    if (this.#done)
      this.#host.done(); // the answer was whole before the connection broke
    else this.#host.broken(failure, false);
  }

  onLeft(): void {
    if (this.#committed && !this.#over) this.#count();
  }

  /** Looks at an event before the commit point; true when the commit point has been reached with it. */
  #weigh(event: Buffer): boolean {
    const data = eventData(event);
    const kind = classify(data, eventName(event));
    if (kind === 'error') {
      this.#fail(fromErrorText(data!, this.#backend));
      return false;
    }
    if (kind === 'empty') return false; // heartbeats only after the commit point
    // A stream may end without a word: that is its answer.
    if (kind === 'content' || kind === 'done' || this.#heldBytes + event.length > HELD_BYTES_MAX) {
      this.#commit();
      return true;
    }
    const { usageOnly, usage } = inspect(event);
    if (usage) this.#usage = usage;
    if (usageOnly && this.#hideUsage) return false;
    this.#held.push(event);
    this.#heldBytes += event.length;
    return false;
  }

  #commit(): void {
    this.#committed = true;
    this.#host.commit(this.#headers, 'text/event-stream; charset=utf-8');
    if (this.#held.length > 0)
      this.#host.write(this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held));
    this.#held = [];
  }

  /** `piece` is what the events were cut from: it goes on as it is when it holds nothing but them. */
  #forward(events: Buffer[], piece: Buffer | undefined): void {
    let kept: Buffer[] | undefined;
    let bytes = 0;
    for (let i = 0; i < events.length; i++) {
      const event = events[i]!;
      const facts = inspect(event);
      if (facts.usage) this.#usage = facts.usage;
      if (facts.delta) this.#deltas++;
      if (facts.finished) this.#finished = true;
      if (facts.done) this.#done = true;
      const hidden = facts.usageOnly && this.#hideUsage;
      if (hidden) kept ??= events.slice(0, i);
      else {
        kept?.push(event);
        bytes += event.length;
      }
      if (facts.error) {
        this.#write((kept ?? events).slice(0, kept ? kept.length : i + 1));
        this.#over = true;
        this.#count();
        const message = `The backend '${this.#backend}' failed in the middle of its answer.`;
        this.#host.broken(fromBrokenAnswer('error-event', message), true);
        return;
      }
    }
    this.#pass(events, kept, piece, bytes);
    // The answer is whole: the caller need not wait for the engine to close its side.
    if (this.#done) this.onEnd();
  }

  #pass(events: Buffer[], kept: Buffer[] | undefined, piece: Buffer | undefined, bytes: number): void {
    if (!kept && piece && bytes === piece.length && this.#splitter.held === 0) this.#host.write(piece);
    else this.#write(kept ?? events);
  }

  #write(events: Buffer[]): void {
    if (events.length === 1) this.#host.write(events[0]!);
    else if (events.length > 1) this.#host.write(Buffer.concat(events));
  }

  #fail(failure: AttemptFailure): void {
    this.#over = true;
    this.#held = [];
    this.#host.failed(failure);
  }

  /** The engine's own count, or else one token for each delta. */
  #count(): void {
    this.#host.count(this.#usage?.tokensIn, this.#usage?.tokensOut ?? this.#deltas);
  }
}
