import { StringDecoder } from 'node:string_decoder';

/** One event as a client of the specification sees it: the joined `data` lines, and the other fields it carried. */
export interface SseEvent {
  data: string;
  event?: string;
  id?: string;
}

/** Reads Server-Sent Events from pieces of any size; written after the WHATWG specification, apart from `src/`. */
export class SseReader {
  readonly events: SseEvent[] = [];
  readonly comments: string[] = [];
  #decoder = new StringDecoder('utf8');
  #text = '';
  #data: string[] = [];
  #fields: { event?: string; id?: string } = {};

  feed(piece: Buffer): void {
    this.#text += this.#decoder.write(piece);
    for (;;) {
      const match = /\r\n|\n|\r/.exec(this.#text);
      if (!match) return;
      const after = match.index + match[0].length;
      // A carriage return at the very end may be the first half of a line end.
      if (match[0] === '\r' && after === this.#text.length) return;
      const line = this.#text.slice(0, match.index);
      this.#text = this.#text.slice(after);
      this.#line(line);
    }
  }

  /** What came after the last whole line. */
  get rest(): string {
    return this.#text;
  }

  #line(line: string): void {
    if (line === '') {
      if (this.#data.length > 0) this.events.push({ data: this.#data.join('\n'), ...this.#fields });
      this.#data = [];
      this.#fields = {};
      return;
    }
    if (line.startsWith(':')) {
      this.comments.push(line.slice(1).trim());
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.#data.push(value);
    else if (field === 'event' || field === 'id') this.#fields[field] = value;
  }
}

export function parseSse(bytes: Buffer): SseEvent[] {
  const reader = new SseReader();
  reader.feed(bytes);
  return reader.events;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
export type Json = any;

/** The JSON objects of a stream, `[DONE]` left out. */
export function objectsOf(events: readonly SseEvent[]): Json[] {
  return events.filter((event) => event.data !== '[DONE]').map((event) => JSON.parse(event.data));
}

/** The text of the first choice's deltas, joined. */
export function textOf(events: readonly SseEvent[]): string {
  return objectsOf(events)
    .flatMap((object) => object.choices ?? [])
    .map((choice) => choice.delta?.content ?? choice.text ?? '')
    .join('');
}

/** The first error object of a stream. */
export function errorOf(events: readonly SseEvent[]): Json | undefined {
  return objectsOf(events).find((object) => object?.error)?.error;
}
