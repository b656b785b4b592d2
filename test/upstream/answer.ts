import { gunzipSync } from 'node:zlib';
import { systemClock } from '../../src/kernel/clock.ts';
import { errorOf, type Json, objectsOf, type SseEvent, SseReader, textOf } from './sse.ts';
import { within } from './waiting.ts';

/** An answer as it comes in over a bare socket; grows until it is `complete` or has a `fault`. */
export class Answer {
  status = 0;
  headers: (readonly [string, string])[] = [];
  rawHead: Buffer = Buffer.alloc(0);
  /** The statuses of 1xx answers that came before. */
  readonly interim: number[] = [];
  framing: 'chunked' | 'length' | 'close' | 'none' | undefined;
  /** The framing says that the body has ended. */
  complete = false;
  /** Why it will never be complete: the connection was closed or reset, or `whole` waited in vain. */
  fault: string | undefined;
  /** Pieces of the body with their framing undone, each with the moment it came. */
  readonly pieces: { atMs: number; bytes: Buffer }[] = [];
  readonly sse = new SseReader();
  sentAtMs: number = systemClock.mono();
  headAtMs: number | undefined;
  endAtMs: number | undefined;
  readonly method: string;
  #waiters = new Set<() => void>();

  constructor(method: string) {
    this.method = method;
  }

  header(name: string): string | undefined {
    return this.headerAll(name)[0];
  }
  headerAll(name: string): string[] {
    return this.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  }
  get ended(): boolean {
    return this.complete || this.fault !== undefined;
  }
  /** The body as it was sent, its framing undone. */
  get body(): Buffer {
    return Buffer.concat(this.pieces.map((piece) => piece.bytes));
  }
  /** The body with its content encoding undone. */
  get content(): Buffer {
    return this.header('content-encoding') === 'gzip' ? gunzipSync(this.body) : this.body;
  }
  json(): Json {
    return JSON.parse(this.content.toString());
  }
  get isStream(): boolean {
    return this.header('content-type')?.startsWith('text/event-stream') ?? false;
  }
  get events(): readonly SseEvent[] {
    return this.sse.events;
  }
  /** The events' JSON objects, `[DONE]` left out. */
  get objects(): Json[] {
    return objectsOf(this.events);
  }
  get done(): boolean {
    return this.events.at(-1)?.data === '[DONE]';
  }
  /** The text of a chat answer, streamed or not. */
  get text(): string {
    return this.isStream ? textOf(this.events) : this.json().choices[0].message.content;
  }
  /** The error object of the body, or of a stream's error event. */
  get error(): Json | undefined {
    return this.isStream ? errorOf(this.events) : this.json().error;
  }

  /** Waits until the answer looks so, or ends; true when it looks so. Throws when neither comes within `withinMs`. */
  async until(look: (answer: this) => boolean, withinMs = 10_000): Promise<boolean> {
    if (!look(this) && !this.ended) {
      const met = new Promise<void>((resolve) => {
        const waiter = () => {
          if (!look(this) && !this.ended) return;
          this.#waiters.delete(waiter);
          resolve();
        };
        this.#waiters.add(waiter);
      });
      await within(`an answer (so far ${this})`, withinMs, met);
    }
    return look(this);
  }

  /** The answer once it has ended, whichever way; one that hangs longer gets the fault `timeout`. Never throws. */
  async whole(withinMs = 10_000): Promise<this> {
    await this.until(() => false, withinMs).catch(() => {
      this.fault = 'timeout';
    });
    return this;
  }

  /** Called by the reader of the connection after each change. */
  changed(): void {
    if (this.ended) this.endAtMs ??= systemClock.mono();
    for (const waiter of [...this.#waiters]) waiter();
  }

  toString(): string {
    const body = this.body.subarray(0, 300).toString();
    return `<${this.status} complete=${this.complete} fault=${this.fault} ${JSON.stringify(body)}>`;
  }
}

/** Takes the bytes of one connection and fills the expected answers in their order. */
export class AnswerReader {
  readonly expected: Answer[] = [];
  #bytes: Buffer = Buffer.alloc(0);
  #left = 0;
  #step: 'head' | 'length' | 'chunk-head' | 'chunk' | 'trailers' | 'close' = 'head';

  feed(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (let answer = this.expected[0]; answer !== undefined; answer = this.expected[0]) {
      if (this.#advance(answer)) continue;
      answer.changed();
      return;
    }
  }

  /** The connection has ended, by a FIN or with an error. */
  end(fault: string): void {
    for (const answer of this.expected.splice(0)) {
      if (this.#step === 'close') answer.complete = true;
      else answer.fault ??= `${fault} in ${this.#step}`;
      this.#step = 'head';
      answer.changed();
    }
  }

  /** Bytes that no expected answer has claimed. */
  get rest(): Buffer {
    return this.#bytes;
  }

  /** Reads one element; false when its bytes are not there yet. */
  #advance(answer: Answer): boolean {
    if (this.#step === 'head') return this.#head(answer);
    if (this.#step === 'chunk-head') return this.#chunkHead();
    if (this.#step === 'trailers') return this.#trailers(answer);
    return this.#data(answer);
  }

  #line(mark: string): string | undefined {
    const at = this.#bytes.indexOf(mark, 0, 'latin1');
    return at < 0 ? undefined : this.#take(at + mark.length).toString('latin1');
  }

  #take(count: number): Buffer {
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  #head(answer: Answer): boolean {
    const text = this.#line('\r\n\r\n');
    if (text === undefined) return false;
    const [first = '', ...lines] = text.slice(0, -4).split('\r\n');
    const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(first)?.[1]);
    if (Number.isNaN(status)) {
      answer.fault = `no HTTP answer: ${JSON.stringify(first)}`;
      this.expected.shift();
      answer.changed();
      return true;
    }
    if (status >= 100 && status < 200 && status !== 101) {
      answer.interim.push(status);
      return true;
    }
    answer.rawHead = Buffer.from(text, 'latin1');
    answer.status = status;
    answer.headers = lines.map((line) => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]);
    answer.headAtMs = systemClock.mono();
    this.#frame(answer);
    return true;
  }

  #frame(answer: Answer): void {
    const length = answer.header('content-length');
    if (answer.method === 'HEAD' || answer.status === 204 || answer.status === 304) {
      answer.framing = 'none';
      this.#finish(answer);
    } else if (answer.header('transfer-encoding')?.toLowerCase().includes('chunked')) {
      answer.framing = 'chunked';
      this.#step = 'chunk-head';
    } else if (length !== undefined) {
      answer.framing = 'length';
      this.#left = Number(length);
      if (this.#left === 0) this.#finish(answer);
      else this.#step = 'length';
    } else {
      answer.framing = 'close';
      this.#step = 'close';
    }
  }

  #chunkHead(): boolean {
    const line = this.#line('\r\n');
    if (line === undefined) return false;
    this.#left = Number.parseInt(line, 16);
    this.#step = this.#left === 0 ? 'trailers' : 'chunk';
    return true;
  }

  #trailers(answer: Answer): boolean {
    const line = this.#line('\r\n');
    if (line === '\r\n') this.#finish(answer);
    return line !== undefined;
  }

  #data(answer: Answer): boolean {
    if (this.#bytes.length === 0) return false;
    if (this.#left === 0 && this.#step === 'chunk') {
      if (this.#bytes.length < 2) return false;
      this.#take(2);
      this.#step = 'chunk-head';
      return true;
    }
    const bytes = this.#take(
      this.#step === 'close' ? this.#bytes.length : Math.min(this.#left, this.#bytes.length),
    );
    this.#left -= bytes.length;
    answer.pieces.push({ atMs: systemClock.mono(), bytes });
    if (answer.isStream) answer.sse.feed(bytes);
    if (this.#step === 'length' && this.#left === 0) this.#finish(answer);
    return true;
  }

  #finish(answer: Answer): void {
    answer.complete = true;
    this.#step = 'head';
    this.expected.shift();
    answer.changed();
  }
}
