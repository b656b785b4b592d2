import { isObject, type Json } from '../../protocols/json-object.ts';
import { type IdPrefix, newId } from '../ids.ts';
import { outputText, type Part } from '../items.ts';

/** Tells an event of a stream; a whole answer has none. */
export type Emit = (type: string, members: Json) => void;

type Status = 'completed' | 'incomplete';

interface OpenItem {
  index: number;
  item: Json & { id: string };
}
interface OpenPart {
  of: OpenItem;
  index: number;
  type: 'output_text' | 'refusal' | 'reasoning_text';
  words: string;
  logprobs: unknown[];
}
interface OpenCall extends OpenItem {
  name: string;
  words: string;
}

/** Where engines put what a model thinks. */
const THOUGHTS = ['reasoning_content', 'reasoning'];
/** Calls of one answer. */
const CALLS_MAX = 1024;

/**
 * Makes the items of a response out of the deltas of a chat, or out of its one message, and tells each step as it is made.
 * Thoughts, words and calls each are an item; the calls stay open to the end, since engines may tell them interleaved.
 */
export class Output {
  /** In the order in which they were begun. */
  readonly items: (Json & { id: string })[] = [];
  readonly #emit: Emit;
  #message: OpenItem | undefined;
  #thoughts: OpenItem | undefined;
  #part: OpenPart | undefined;
  readonly #calls = new Map<number, OpenCall>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** A delta of a choice, or its message. */
  take(delta: Json, logprobs?: unknown): void {
    for (const key of THOUGHTS) {
      const thought = delta[key];
      if (typeof thought !== 'string' || thought === '') continue;
      this.#say('reasoning_text', thought);
      break; // some engines tell the same twice
    }
    const { refusal } = delta;
    const content = wordsOf(delta['content']);
    if (content !== '') this.#say('output_text', content, logprobsOf(logprobs));
    if (typeof refusal === 'string' && refusal !== '') this.#say('refusal', refusal);
    const calls = delta['tool_calls'];
    if (Array.isArray(calls)) for (const [at, call] of calls.entries()) this.#call(call, at);
  }

  /** Ends every item. */
  finish(status: Status): void {
    this.#closePart();
    this.#closeThoughts();
    if (status === 'completed' && this.items.every(({ type }) => type === 'reasoning')) {
      this.#say('output_text', ''); // a model may answer with nothing: that is its message
      this.#closePart();
    }
    this.#closeMessage(status);
    for (const call of this.#calls.values()) this.#closeCall(call, status);
    this.#calls.clear();
  }

  #open<Open extends OpenItem>(prefix: IdPrefix, item: Json, more: Omit<Open, keyof OpenItem>): Open {
    const opened = {
      index: this.items.length,
      item: { id: newId(prefix), ...item },
      ...more,
    } as unknown as Open;
    this.items.push(opened.item);
    this.#emit('response.output_item.added', { output_index: opened.index, item: opened.item });
    return opened;
  }

  #say(type: OpenPart['type'], words: string, logprobs: unknown[] = []): void {
    if (this.#part?.type !== type) this.#begin(type);
    const part = this.#part!;
    part.words += words;
    for (const each of logprobs) part.logprobs.push(each);
    if (words === '') return;
    this.#emit(`response.${type}.delta`, {
      ...place(part),
      delta: words,
      ...(type === 'output_text' ? { logprobs } : {}),
    });
  }

  #begin(type: OpenPart['type']): void {
    this.#closePart();
    let of: OpenItem;
    if (type === 'reasoning_text') {
      this.#closeMessage('completed');
      of = this.#thoughts ??= this.#open('rs', { type: 'reasoning', summary: [], content: [] }, {});
    } else {
      this.#closeThoughts();
      const item = { type: 'message', status: 'in_progress', role: 'assistant', content: [] };
      of = this.#message ??= this.#open('msg', item, {});
    }
    this.#part = { of, index: contentOf(of).length, type, words: '', logprobs: [] };
    this.#emit('response.content_part.added', { ...place(this.#part), part: partOf(type, '') });
  }

  #closePart(): void {
    const part = this.#part;
    if (!part) return;
    this.#part = undefined;
    const { type, words, logprobs } = part;
    const made = partOf(type, words, logprobs);
    contentOf(part.of).push(made);
    const said = type === 'refusal' ? { refusal: words } : { text: words };
    this.#emit(`response.${type}.done`, {
      ...place(part),
      ...said,
      ...(type === 'output_text' ? { logprobs } : {}),
    });
    this.#emit('response.content_part.done', { ...place(part), part: made });
  }

  #closeThoughts(): void {
    if (!this.#thoughts) return;
    this.#done(this.#thoughts);
    this.#thoughts = undefined;
  }

  #closeMessage(status: Status): void {
    if (!this.#message) return;
    this.#message.item['status'] = status;
    this.#done(this.#message);
    this.#message = undefined;
  }

  #done({ index, item }: OpenItem): void {
    this.#emit('response.output_item.done', { output_index: index, item });
  }

  #call(told: unknown, at: number): void {
    if (!isObject(told)) return;
    const index = typeof told['index'] === 'number' ? told['index'] : at;
    const { name, arguments: words } = isObject(told['function']) ? told['function'] : ({} as Json);
    let call = this.#calls.get(index);
    if (!call) {
      if (this.#calls.size >= CALLS_MAX) return;
      this.#closePart();
      this.#closeThoughts();
      this.#closeMessage('completed');
      const id = typeof told['id'] === 'string' && told['id'] !== '' ? told['id'] : newId('call');
      const named = typeof name === 'string' ? name : '';
      const item = { type: 'function_call', status: 'in_progress', call_id: id, name: named, arguments: '' };
      call = this.#open<OpenCall>('fc', item, { name: named, words: '' });
      this.#calls.set(index, call);
    }
    // An engine that has no streams of its own tells arguments as an object.
    const more = isObject(words) ? JSON.stringify(words) : words;
    if (typeof more !== 'string' || more === '') return;
    call.words += more;
    this.#emit('response.function_call_arguments.delta', {
      item_id: call.item.id,
      output_index: call.index,
      delta: more,
    });
  }

  #closeCall(call: OpenCall, status: Status): void {
    const { index, item, words, name } = call;
    item['arguments'] = words;
    item['status'] = status;
    this.#emit('response.function_call_arguments.done', {
      item_id: item.id,
      output_index: index,
      name,
      arguments: words,
    });
    this.#done(call);
  }
}

function place({ of, index }: OpenPart): Json {
  return { item_id: of.item.id, output_index: of.index, content_index: index };
}

const contentOf = ({ item }: OpenItem): Part[] => item['content'] as Part[];

function partOf(type: OpenPart['type'], words: string, logprobs: unknown[] = []): Part {
  switch (type) {
    case 'refusal':
      return { type, refusal: words };
    case 'reasoning_text':
      return { type, text: words };
    case 'output_text':
      return { ...outputText(words), logprobs };
  }
}

/** Some engines tell their words in parts. */
function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const words = (part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '');
  return content.map(words).join('');
}

function logprobsOf(logprobs: unknown): unknown[] {
  const content = isObject(logprobs) ? logprobs['content'] : undefined;
  return Array.isArray(content) ? content : [];
}
