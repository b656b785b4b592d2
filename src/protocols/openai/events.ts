/** What the events of a stream say, as far as the gateway has to know. */

export interface Usage {
  tokensIn: number;
  tokensOut: number;
}

const DONE = '[DONE]';

/** The `data` of an event, its lines joined as the standard says; undefined when it has none (a comment, a keep-alive). */
export function eventData(event: Buffer): string | undefined {
  const text = event.toString('utf8');
  if (text.startsWith('data: ')) {
    const end = text.indexOf('\n');
    if (end >= text.length - 3 && text.trimEnd().length <= end)
      return text.slice(6, text[end - 1] === '\r' ? end - 1 : end);
  }
  const lines: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('data:')) lines.push(line[5] === ' ' ? line.slice(6) : line.slice(5));
  }
  return lines.length > 0 ? lines.join('\n') : undefined;
}

/** The `event` field of an event; undefined where it has none. */
export function eventName(event: Buffer): string | undefined {
  if (event[0] !== 0x65) return undefined; // it begins with `event` where engines send it at all
  return /^event: ?([^\r\n]*)/.exec(event.toString('latin1', 0, Math.min(event.length, 200)))?.[1];
}

export type EventKind = 'empty' | 'waiting' | 'content' | 'done' | 'error';

/**
 * What an event means before the commit point: `content` commits (words, reasoning, a tool call, a refusal, a finish
 * reason, or anything that is not understood), `waiting` is a role-only or usage frame that can be held back. Errors are
 * told in three ways: a member `error`, `"object": "error"` (older vLLM and SGLang), or an event named `error`.
 */
export function classify(data: string | undefined, named?: string): EventKind {
  if (data === undefined) return 'empty';
  if (named === 'error') return 'error';
  if (data === DONE) return 'done';
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return 'content'; // not ours to judge: pass it on
  }
  if (typeof value !== 'object' || value === null) return 'content';
  const object = value as { error?: unknown; object?: unknown; choices?: unknown };
  if (object.error || object.object === 'error') return 'error';
  if (!Array.isArray(object.choices)) return 'content';
  return object.choices.some(hasContent) ? 'content' : 'waiting';
}

function hasContent(choice: unknown): boolean {
  if (typeof choice !== 'object' || choice === null) return false;
  const {
    delta,
    text,
    finish_reason: finish,
  } = choice as { delta?: unknown; text?: unknown; finish_reason?: unknown };
  if (finish) return true;
  if (typeof text === 'string' && text !== '') return true;
  if (typeof delta !== 'object' || delta === null) return false;
  return Object.entries(delta).some(
    ([key, value]) =>
      key !== 'role' && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0),
  );
}

const ERROR_KEY = Buffer.from('"error"');
const USAGE_KEY = Buffer.from('"usage"');
const FINISH_KEY = Buffer.from('"finish_reason"');
const DONE_BYTES = Buffer.from(DONE);

export interface EventFacts {
  done: boolean;
  error: boolean;
  finished: boolean;
  usage: Usage | undefined;
  /** A chunk that carries usage and no choice: it exists only because usage was asked for. */
  usageOnly: boolean;
  /** Anything that may have been one token of the answer. */
  delta: boolean;
}

/** What must be known of every event after the commit point; nothing is parsed unless its bytes ask for it. */
export function inspect(event: Buffer): EventFacts {
  const facts: EventFacts = {
    done: false,
    error: false,
    finished: false,
    usage: undefined,
    usageOnly: false,
    delta: false,
  };
  if (event[0] === 0x3a) return facts; // a comment
  if (event.length < 24) {
    if (event.includes(DONE_BYTES) && eventData(event) === DONE) facts.done = true;
    return facts;
  }
  facts.delta = true;
  facts.error = eventName(event) === 'error';
  facts.finished = valueFollows(event, FINISH_KEY);
  if (valueFollows(event, USAGE_KEY) || event.includes(ERROR_KEY)) readWhole(event, facts);
  return facts;
}

/** Whether the key stands in the bytes with a value other than null. */
function valueFollows(event: Buffer, key: Buffer): boolean {
  for (let at = event.indexOf(key); at >= 0; at = event.indexOf(key, at)) {
    at += key.length;
    while (event[at] === 0x20 || event[at] === 0x3a) at++;
    if (event[at] !== 0x6e) return true;
  }
  return false;
}

function readWhole(event: Buffer, facts: EventFacts): void {
  let value: unknown;
  try {
    value = JSON.parse(eventData(event) ?? '');
  } catch {
    return; // not JSON: it is passed on, and says nothing to us
  }
  if (typeof value !== 'object' || value === null) return;
  const object = value as { error?: unknown; object?: unknown; usage?: unknown; choices?: unknown };
  facts.error ||= Boolean(object.error) || object.object === 'error';
  facts.usage = readUsage(object.usage);
  facts.usageOnly = facts.usage !== undefined && Array.isArray(object.choices) && object.choices.length === 0;
  if (facts.usageOnly) facts.delta = false;
}

/** OpenAI's usage object, for chat, completions and embeddings. */
export function readUsage(usage: unknown): Usage | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  const { prompt_tokens: tokensIn, completion_tokens: tokensOut } = usage as Record<string, unknown>;
  if (typeof tokensIn !== 'number') return undefined;
  return { tokensIn, tokensOut: typeof tokensOut === 'number' ? tokensOut : 0 };
}
