import { isObject, type Json, setMember } from '../json-object.ts';

/** Finish reasons of an answer that came to its own end. */
const FINISHED = ['stop', 'length', 'tool_calls', 'function_call', 'eos_token', 'stop_sequence'];
/** Members of a delta that come in pieces of text. */
const TEXTS = ['content', 'reasoning', 'reasoning_content', 'refusal'];
/** Random padding that OpenAI puts beside the words. */
const PADDING = 'obfuscation';
/** Choices, and tool calls of one choice. */
const PARTS_MAX = 1024;

interface Choice {
  role: unknown;
  /** Texts by the name of their member. */
  texts: Map<string, string>;
  toolCalls: Json[];
  functionCall: Json | undefined;
  /** Other members of the message, and of the choice. */
  message: Json;
  more: Json;
  logprobs: Json | undefined;
  finish: unknown;
}

/**
 * Puts a streamed answer together into the document that the engine would have given without streaming. What it does
 * not understand it keeps as long as it is said once, or always in the same words; what would have to be guessed at makes
 * the whole answer one that cannot be put together.
 */
export class AnswerAssembly {
  readonly #kind: 'chat' | 'completions';
  readonly #head: Json = {};
  readonly #choices: Choice[] = [];
  #usage: unknown;
  #broken = false;
  /** Characters of the texts so far, and a little for what surrounds them. */
  size = 0;

  constructor(kind: 'chat' | 'completions') {
    this.#kind = kind;
  }

  /** Takes the data of one event. */
  add(data: string): void {
    if (this.#broken || data === '[DONE]') return;
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch {
      chunk = undefined; // not JSON: nobody knows what it says
    }
    if (!isObject(chunk) || chunk['error']) this.#broken = true;
    else this.#chunk(chunk);
  }

  /** The document as JSON; undefined where the answer is not whole, or cannot be put together exactly. */
  finish(): Json | undefined {
    const choices = this.#choices;
    const whole = choices.length > 0 && [...choices].every((choice) => choice && isFinished(choice.finish));
    if (this.#broken || !whole) return undefined;
    const { id, created, model, ...rest } = this.#head;
    const built = choices.map((choice, index) => this.#choice(choice, index));
    if (built.includes(undefined)) return undefined;
    return {
      ...(id === undefined ? {} : { id }),
      object: this.#kind === 'chat' ? 'chat.completion' : 'text_completion',
      ...(created === undefined ? {} : { created }),
      ...(model === undefined ? {} : { model }),
      ...rest,
      choices: built,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
    };
  }

  #chunk(chunk: Json): void {
    for (const [key, value] of Object.entries(chunk)) {
      if (key === 'choices') {
        for (const choice of Array.isArray(value) ? value : []) this.#addChoice(choice);
      } else if (key === 'usage') {
        if (value !== null) this.#usage = value;
      } else if (key === 'id' || key === 'created' || key === 'model') {
        if (value !== null) this.#head[key] ??= value;
      } else if (key === 'system_fingerprint' || key === 'service_tier') {
        if (value !== null) this.#head[key] = value;
      } else if (key !== 'object' && key !== PADDING) this.#once(this.#head, key, value);
    }
  }

  #addChoice(value: unknown): void {
    if (!isObject(value) || !isPlace(value['index'])) {
      this.#broken = true;
      return;
    }
    const index = value['index'];
    const choice = (this.#choices[index] ??= newChoice());
    for (const [key, part] of Object.entries(value)) {
      if (key === 'index' || part === null) continue;
      if (key === 'delta' && this.#kind === 'chat') this.#delta(choice, part);
      else if (key === 'text' && this.#kind === 'completions') this.#text(choice, key, part);
      else if (key === 'finish_reason') {
        if (part !== '') this.#once(choice as unknown as Json, 'finish', part);
      } else if (key === 'logprobs') this.#logprobs(choice, part);
      else this.#once(choice.more, key, part);
    }
  }

  #delta(choice: Choice, delta: unknown): void {
    if (!isObject(delta)) {
      this.#broken = true;
      return;
    }
    for (const [key, part] of Object.entries(delta)) {
      if (part === null) continue;
      if (TEXTS.includes(key)) this.#text(choice, key, part);
      else if (key === 'role') choice.role ??= part;
      else if (key === 'tool_calls') this.#toolCalls(choice, part);
      else if (key === 'function_call') this.#named((choice.functionCall ??= {}), part);
      else if (key !== PADDING) this.#once(choice.message, key, part);
    }
  }

  #text(choice: Choice, key: string, part: unknown): void {
    if (typeof part !== 'string') this.#broken = true;
    else {
      this.size += part.length;
      choice.texts.set(key, (choice.texts.get(key) ?? '') + part);
    }
  }

  #toolCalls(choice: Choice, parts: unknown): void {
    for (const part of Array.isArray(parts) ? parts : [undefined]) {
      if (!isObject(part) || !isPlace(part['index'])) {
        this.#broken = true;
        return;
      }
      const call = (choice.toolCalls[part['index']] ??= {});
      for (const [key, value] of Object.entries(part)) {
        if (key === 'index' || value === null) continue;
        if (key === 'function' || key === 'custom') this.#named((call[key] ??= {}) as Json, value);
        else if (value !== '' || call[key] === undefined) this.#once(call, key, value);
      }
    }
  }

  /** What is called, by a name that comes once, with arguments that come in pieces. */
  #named(target: Json, value: unknown): void {
    if (!isObject(value)) {
      this.#broken = true;
      return;
    }
    for (const [key, part] of Object.entries(value)) {
      if (part === null) continue;
      if (key === 'arguments' || key === 'input') {
        if (typeof part !== 'string') this.#broken = true;
        else {
          this.size += part.length;
          target[key] = ((target[key] as string | undefined) ?? '') + part;
        }
      } else if (part !== '' || target[key] === undefined) this.#once(target, key, part);
    }
  }

  /** Lists that go on from chunk to chunk. */
  #logprobs(choice: Choice, value: unknown): void {
    if (!isObject(value)) {
      this.#broken = true;
      return;
    }
    choice.logprobs ??= {};
    for (const [key, list] of Object.entries(value)) {
      const known = (choice.logprobs[key] ??= null) as unknown[] | null;
      if (list === null) continue;
      if (!Array.isArray(list)) {
        this.#broken = true;
        return;
      }
      this.size += 64 * list.length;
      choice.logprobs[key] = known === null ? list : known.concat(list);
    }
  }

  #once(target: Json, key: string, value: unknown): void {
    if (value === null) return;
    const known = Object.hasOwn(target, key) ? target[key] : undefined;
    if (known === undefined || known === '') {
      setMember(target, key, value);
      this.size += 64;
    } else if (JSON.stringify(known) !== JSON.stringify(value)) this.#broken = true;
  }

  #choice(choice: Choice, index: number): Json | undefined {
    const { logprobs = null, finish: finish_reason, more } = choice;
    if (this.#kind === 'completions') {
      return { index, text: choice.texts.get('text') ?? '', logprobs, finish_reason, ...more };
    }
    const calls = [...choice.toolCalls];
    if (calls.some((call) => call === undefined)) return undefined;
    const { content, ...texts } = Object.fromEntries(choice.texts) as Record<string, string>;
    const called = calls.length > 0 || choice.functionCall !== undefined;
    const message = {
      role: choice.role ?? 'assistant',
      // An engine that begins every stream with '' means no words by it where a tool is called.
      content: content === undefined || (content === '' && called) ? null : content,
      ...texts,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...(choice.functionCall ? { function_call: choice.functionCall } : {}),
      ...choice.message,
    };
    return { index, message, logprobs, finish_reason, ...more };
  }
}

/** Whether a finish reason says that the answer came to its own end. */
export function isFinished(reason: unknown): boolean {
  return typeof reason === 'string' && FINISHED.includes(reason);
}

function newChoice(): Choice {
  return {
    role: undefined,
    texts: new Map(),
    toolCalls: [],
    functionCall: undefined,
    message: {},
    more: {},
    logprobs: undefined,
    finish: undefined,
  };
}

function isPlace(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < PARTS_MAX;
}
