import { isObject, type Json } from '../protocols/json-object.ts';
import { EventSplitter } from '../protocols/openai/event-splitter.ts';
import { eventData, eventName } from '../protocols/openai/events.ts';

/** Chats told as completions, and completions as chats: what a stage answers in, and what its caller asked in, may differ. */

type Kind = 'chat' | 'completions';

/** A whole answer of the other kind; undefined where it is none. */
export function documentAs(kind: Kind, document: unknown): Json | undefined {
  if (!isObject(document) || !Array.isArray(document['choices'])) return undefined;
  const choices = (document['choices'] as unknown[]).map((choice) => choiceAs(kind, choice));
  if (choices.includes(undefined)) return undefined;
  const object = kind === 'chat' ? 'chat.completion' : 'text_completion';
  return { ...document, object, choices };
}

function choiceAs(kind: Kind, choice: unknown): Json | undefined {
  if (!isObject(choice)) return undefined;
  const { index, finish_reason } = choice;
  if (kind === 'chat') {
    const { text } = choice;
    if (typeof text !== 'string') return undefined;
    return {
      index,
      message: { role: 'assistant', content: text, refusal: null },
      logprobs: null,
      finish_reason,
    };
  }
  const { message } = choice;
  if (!isObject(message)) return undefined;
  const text = typeof message['content'] === 'string' ? message['content'] : '';
  return { index, text, logprobs: null, finish_reason };
}

/** A stream told as one of the other kind, event by event. Errors, comments and what is not understood pass as they are. */
export class StreamReframing {
  readonly #kind: Kind;
  readonly #splitter = new EventSplitter();
  /** Choices of which something was said. */
  readonly #begun: boolean[] = [];

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  /** What of the stream is whole with this piece. */
  push(piece: Buffer | string): string {
    let told = '';
    for (const event of this.#splitter.push(typeof piece === 'string' ? Buffer.from(piece) : piece)) {
      told += this.#event(event);
    }
    return told;
  }

  #event(event: Buffer): string {
    const data = eventData(event);
    const same = () => event.toString('utf8');
    if (data === undefined || data === '[DONE]' || eventName(event) !== undefined) return same();
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch {
      return same(); // not ours to judge
    }
    if (!isObject(chunk) || chunk['error'] || !Array.isArray(chunk['choices'])) return same();
    const choices = (chunk['choices'] as unknown[]).map((choice) => this.#choice(choice));
    const object = this.#kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
    return `data: ${JSON.stringify({ ...chunk, object, choices })}\n\n`;
  }

  #choice(choice: unknown): unknown {
    if (!isObject(choice)) return choice;
    const { index, finish_reason = null } = choice;
    if (this.#kind === 'completions') {
      const content = isObject(choice['delta']) ? choice['delta']['content'] : undefined;
      return { index, text: typeof content === 'string' ? content : '', logprobs: null, finish_reason };
    }
    const place = typeof index === 'number' ? index : 0;
    const delta = { ...(this.#begun[place] ? {} : { role: 'assistant' }), content: choice['text'] ?? '' };
    this.#begun[place] = true;
    return { index, delta, logprobs: null, finish_reason };
  }
}
