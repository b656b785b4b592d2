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
    const end = text.search(/[\r\n]/);
    if (text.trimEnd().length <= end) return text.slice(6, end);
  }
  const lines: string[] = [];
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line.startsWith('data:')) lines.push(line[5] === ' ' ? line.slice(6) : line.slice(5));
  }
  return lines.length > 0 ? lines.join('\n') : undefined;
}

/** The `event` field of an event; undefined where it has none. */
export function eventName(event: Buffer): string | undefined {
  if (event[0] === 0x64) return undefined; // it stands before `data` where engines send it at all
  return /(?:^|[\r\n])event: ?([^\r\n]*)/.exec(event.toString('latin1', 0, Math.min(event.length, 400)))?.[1];
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
const LF = 0x0a;
const QUOTE = 0x22;

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

/** What must be known of every event after the commit point; a usual one is parsed only where its bytes ask for it. */
export function inspect(event: Buffer): EventFacts {
  const facts: EventFacts = {
    done: false,
    error: false,
    finished: false,
    usage: undefined,
    usageOnly: false,
    delta: false,
  };
  if (!isUsual(event) || valueFollows(event, USAGE_KEY) || event.includes(ERROR_KEY)) readWhole(event, facts);
  else {
    facts.delta = true;
    facts.finished = valueFollows(event, FINISH_KEY);
  }
  return facts;
}

/** One line of data that holds an object, and nothing else. */
function isUsual(event: Buffer): boolean {
  if (event[0] !== 0x64 || event[5] !== 0x20 || event[6] !== 0x7b) return false; // `data: {`
  return event.indexOf(LF) >= event.length - 3;
}

/** Whether the key stands in the bytes with a value other than null and the empty string. */
function valueFollows(event: Buffer, key: Buffer): boolean {
  for (let at = event.indexOf(key); at >= 0; at = event.indexOf(key, at)) {
    at += key.length;
    while (event[at] === 0x20 || event[at] === 0x3a) at++;
    const empty = event[at] === QUOTE && event[at + 1] === QUOTE;
    if (event[at] !== 0x6e && !empty) return true;
  }
  return false;
}

function readWhole(event: Buffer, facts: EventFacts): void {
  const data = eventData(event);
  if (data === undefined) return; // a comment, a keep-alive
  facts.error = eventName(event) === 'error';
  facts.done = data === DONE;
  if (facts.done) return;
  facts.delta = true;
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return; // not JSON: it is passed on, and says nothing to us
  }
  if (typeof value !== 'object' || value === null) return;
  const object = value as { error?: unknown; object?: unknown; usage?: unknown; choices?: unknown };
  const choices = Array.isArray(object.choices) ? object.choices : undefined;
  facts.error ||= Boolean(object.error) || object.object === 'error';
  facts.finished = choices?.some((choice) => Boolean(choice?.finish_reason)) ?? false;
  facts.usage = readUsage(object.usage);
  facts.usageOnly = facts.usage !== undefined && (object.choices === null || choices?.length === 0);
  if (facts.usageOnly) facts.delta = false;
}

/** OpenAI's usage object, for chat, completions and embeddings. */
export function readUsage(usage: unknown): Usage | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  const { prompt_tokens: tokensIn, completion_tokens: tokensOut } = usage as Record<string, unknown>;
  if (!isCount(tokensIn)) return undefined;
  return { tokensIn, tokensOut: isCount(tokensOut) ? tokensOut : 0 };
}

/** What can be added to a counter: an engine's figures are not believed without being looked at. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
