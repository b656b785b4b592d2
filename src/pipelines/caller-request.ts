import type { Exchange } from '../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../kernel/errors.ts';
import { scanMembers } from '../protocols/json-members.ts';
import { isObject, type Json, setMember } from '../protocols/json-object.ts';
import { readOipCaller } from './oip.ts';

/** What a caller asked a pipeline for. */
export interface CallerRequest {
  /** The last user message, the prompt, or the one input of embeddings. */
  text: string;
  messages: readonly unknown[];
  /** The caller's JSON, as parsed. */
  body: Json;
}

/** Members that each stage has of its own. */
const OWN = ['model', 'messages', 'prompt', 'input', 'stream', 'stream_options'];
/** What chats and completions both know; of a call of the other kind nothing else goes on. */
const BOTH_KNOW = [
  'max_tokens',
  'temperature',
  'top_p',
  'n',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'user',
];

/** Reads what templates can name; a failure where there is nothing to begin with. */
export function readCaller(x: Exchange): CallerRequest | Failure {
  const call = x.call!;
  if (call.protocol === 'oip') return readOipCaller(x);
  let body: Json;
  try {
    body = JSON.parse(x.caller.body.toString('utf8')) as Json;
  } catch (error) {
    return invalidRequest(
      `We could not parse the body of your request: ${(error as Error).message.slice(0, 200)}.`,
    );
  }
  const twice = givenTwice(x.caller.body);
  if (twice !== undefined) return invalidRequest(`The member '${twice}' is given twice.`, twice);
  if (call.kind === 'chat') return readChat(body);
  return call.kind === 'completions' ? readText(body, 'prompt') : readText(body, 'input');
}

/** Of what a pipeline goes by a body says one thing: engines would have to choose for themselves, and never see it. */
function givenTwice(body: Buffer): string | undefined {
  const scanned = scanMembers(body, 0, body.length, OWN);
  if (typeof scanned === 'string') return undefined;
  const keys = scanned.members.map(({ key }) => key);
  return keys.find((key, at) => keys.indexOf(key) !== at);
}

function readChat(body: Json): CallerRequest | Failure {
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isObject)) {
    return invalidRequest("The member 'messages' must be a list of one message or more.", 'messages');
  }
  const last = (messages as Json[]).findLast(({ role }) => role === 'user');
  return { text: last ? contentText(last['content']) : '', messages, body };
}

function readText(body: Json, member: 'prompt' | 'input'): CallerRequest | Failure {
  const value = body[member];
  const text: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof text !== 'string') {
    return invalidRequest(`A pipeline takes one text as '${member}'.`, member);
  }
  return { text, messages: [{ role: 'user', content: text }], body };
}

/** A text, or the parts of type text joined without anything between. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  let text = '';
  for (const part of content as unknown[]) {
    if (isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string') text += part['text'];
  }
  return text;
}

/**
 * The members of the caller's body that go with the last stage, which is of `kind`: how it wants its answer made. `stream_options`
 * only with a stream, as engines want it.
 */
export function extrasFor(x: Exchange, body: Json, kind: string, stream: boolean): Json {
  const called = x.call!.kind;
  const extras: Json = {};
  if (kind !== 'chat' && kind !== 'completions' && kind !== 'embeddings') return extras;
  const scanned = scanMembers(x.caller.body);
  if (typeof scanned === 'string') throw new Error(`a body that was parsed: ${scanned}`);
  for (const { key, start, end } of scanned.members) {
    if (OWN.includes(key) || (called !== kind && !BOTH_KNOW.includes(key))) continue;
    setMember(extras, key, exactly(x.caller.body.toString('utf8', start, end), body[key]));
  }
  if (stream && body['stream_options'] != null) extras['stream_options'] = body['stream_options'];
  return extras;
}

/** In it may stand a number that JavaScript would round, or has no room for. */
const LONG_NUMBER = /\d{16}|\d[eE]/;

/** What `text` says, with such numbers in its own digits; `value` where there is none. */
function exactly(text: string, value: unknown): unknown {
  if (typeof value === 'string' || !LONG_NUMBER.test(text)) return value;
  return JSON.parse(text, (_key, each: unknown, { source }: { source?: string } = {}) => {
    if (typeof each !== 'number' || source === undefined) return each;
    const kept = Number.isFinite(each) && (!Number.isInteger(each) || Number.isSafeInteger(each));
    return kept ? each : rawJson(source);
  });
}

/** In V8, and not in TypeScript's library yet. */
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };
