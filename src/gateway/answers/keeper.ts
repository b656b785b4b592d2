import { isUtf8 } from 'node:buffer';
import { AnswerAssembly, isFinished } from '../../protocols/openai/answer-assembly.ts';
import { EventSplitter } from '../../protocols/openai/event-splitter.ts';
import { eventData } from '../../protocols/openai/events.ts';
import type { BufferBudget } from '../buffer-budget.ts';
import type { Call } from '../call.ts';
import type { AnswerListener, UpstreamHeaders } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';

/** Headers that say how a body is to be read. */
const BODY_HEADERS = ['content-type', 'inference-header-content-length'];

export interface KeepWish {
  bytesMax: number;
  buffers: BufferBudget;
  /** Called with an answer that is whole and worth keeping. */
  keep: (headers: readonly string[], body: string | Buffer) => void;
}

/**
 * Hears the answer of one request and keeps it, if it is a full one, whole, ended of its own, and can be kept exactly.
 * What it holds meanwhile comes out of the room for all; where there is none, the answer is not kept.
 */
export class AnswerKeeper implements AnswerListener {
  readonly #x: Exchange;
  readonly #wish: KeepWish;
  readonly #splitter = new EventSplitter();
  #assembly: AnswerAssembly | undefined;
  #pieces: Buffer[] = [];
  #held = 0;
  #over = false;

  constructor(x: Exchange, wish: KeepWish) {
    this.#x = x;
    this.#wish = wish;
    x.scope.add(() => this.#giveUp());
  }

  whole(status: number, headers: UpstreamHeaders, body: Buffer): void {
    const coding = headers['content-encoding'];
    const control = String(headers['cache-control'] ?? '').toLowerCase();
    if (status !== 200 || (coding !== undefined && coding !== 'identity') || control.includes('no-store'))
      return;
    const named = BODY_HEADERS.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [name, value] : [];
    });
    const raw = headers['inference-header-content-length'];
    if (
      this.#isFull(body.length) &&
      isWhole(this.#x.call!, body.subarray(0, raw === undefined ? undefined : Number(raw)))
    ) {
      this.#wish.keep(named, keptForm(body));
    }
  }

  piece(bytes: Buffer | string): void {
    if (this.#over) return;
    const { call, streaming } = this.#x;
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    if (!streaming) {
      this.#pieces.push(piece);
      // Of a long document that came in pieces the headers are not known here: only OpenAI's is surely JSON.
      if (call!.protocol !== 'openai' || !this.#hold(this.#held + piece.length)) this.#giveUp();
      return;
    }
    const kind = (call as { kind: 'chat' | 'completions' }).kind;
    const assembly = (this.#assembly ??= new AnswerAssembly(kind));
    for (const event of this.#splitter.push(piece)) {
      const data = eventData(event);
      if (data !== undefined) assembly.add(data);
    }
    if (!this.#hold(assembly.size + this.#splitter.held)) this.#giveUp();
  }

  done(): void {
    if (this.#over) return;
    if (!this.#assembly) {
      this.whole(200, { 'content-type': 'application/json' }, Buffer.concat(this.#pieces));
      return;
    }
    const document = this.#assembly.finish();
    if (!document) return;
    const { tokensIn, tokensOut } = this.#x;
    // The chunk with the usage may have been asked for by the gateway alone, and taken out before it came here.
    if (document['usage'] === undefined && tokensIn !== undefined && tokensOut !== undefined) {
      document['usage'] = {
        prompt_tokens: tokensIn,
        completion_tokens: tokensOut,
        total_tokens: tokensIn + tokensOut,
      };
    }
    const text = JSON.stringify(document);
    if (this.#isFull(Buffer.byteLength(text))) this.#wish.keep(['content-type', 'application/json'], text);
  }

  /** Whether it is no rougher answer than was asked for, and one of so many bytes may be kept. */
  #isFull(bytes: number): boolean {
    const { degraded, outputTokensMax, backend } = this.#x;
    return (
      degraded === undefined && outputTokensMax === undefined && !!backend && bytes <= this.#wish.bytesMax
    );
  }

  #hold(bytes: number): boolean {
    if (bytes > this.#wish.bytesMax) return false;
    const more = bytes - this.#held;
    if (more > 0 && !this.#wish.buffers.take(more)) return false;
    this.#held = Math.max(this.#held, bytes);
    return true;
  }

  #giveUp(): void {
    this.#over = true;
    this.#pieces = [];
    this.#assembly = undefined;
    this.#wish.buffers.give(this.#held);
    this.#held = 0;
  }
}

/**
 * Text where it is text: that lies in the heap, is moved together there, and is given back with the rest of it. Raw tensors
 * keep a copy of their own, since the bytes may be a small part of a large piece that would be kept with them.
 */
function keptForm(body: Buffer): string | Buffer {
  if (isUtf8(body)) return body.toString('utf8');
  const own = Buffer.allocUnsafeSlow(body.length);
  body.copy(own);
  return own;
}

/** Whether a document is an answer that came to its own end. */
function isWhole(call: Call, body: Buffer): boolean {
  let value: { choices?: unknown; data?: unknown; outputs?: unknown; error?: unknown } | null;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    return false;
  }
  if (typeof value !== 'object' || value === null || value.error) return false;
  if (call.protocol === 'oip') return Array.isArray(value.outputs);
  if (call.kind === 'embeddings') return Array.isArray(value.data) && value.data.length > 0;
  const { choices } = value;
  return (
    Array.isArray(choices) &&
    choices.length > 0 &&
    choices.every((choice) => isFinished((choice as { finish_reason?: unknown } | null)?.finish_reason))
  );
}
