import { isObject, type Json, setMember } from '../json-object.ts';

/** Members of a document that each of its chunks repeats. */
const REPEATED = ['id', 'created', 'model', 'system_fingerprint', 'service_tier'];
/** What comes before the words, each in a chunk of its own. */
const THOUGHTS = ['reasoning', 'reasoning_content'];

/**
 * A document of chat or completions as the stream that says the same, `[DONE]` included; undefined where it is not one
 * that can be told so. `withUsage`: the caller asked for the chunk with the usage.
 */
export function answerStream(
  document: unknown,
  kind: 'chat' | 'completions',
  withUsage: boolean,
): string | undefined {
  if (!isObject(document) || !Array.isArray(document['choices'])) return undefined;
  const { choices, usage, object: _, ...head } = document;
  const repeated: Json = {};
  const once: Json = {};
  for (const [key, value] of Object.entries(head)) {
    if (REPEATED.includes(key)) repeated[key] = value;
    else if (value !== null) setMember(once, key, value);
  }
  const object = kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
  const chunk = (parts: Json[], more: Json = {}): Json => ({
    ...repeated,
    object,
    choices: parts,
    ...(withUsage ? { usage: null } : {}),
    ...more,
  });
  const chunks: Json[] = [];
  for (const choice of choices as unknown[]) {
    const parts = isObject(choice) ? (kind === 'chat' ? chatParts(choice) : textParts(choice)) : undefined;
    if (!parts) return undefined;
    for (const part of parts) chunks.push(chunk([part], chunks.length === 0 ? once : {}));
  }
  if (chunks.length === 0) return undefined;
  if (withUsage && isObject(usage)) chunks.push(chunk([], { usage }));
  return `${chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')}data: [DONE]\n\n`;
}

function chatParts(choice: Json): Json[] | undefined {
  const { index, message, logprobs = null, finish_reason, ...more } = choice;
  if (!isObject(message)) return undefined;
  const { role = 'assistant', content = null, tool_calls: calls, ...others } = message;
  if ((content !== null && typeof content !== 'string') || (calls != null && !Array.isArray(calls))) {
    return undefined;
  }
  const part = (delta: Json, say: unknown = null): Json => ({
    index,
    delta,
    logprobs: say,
    finish_reason: null,
  });
  const parts = [part({ role, content: content === null ? null : '' })];
  for (const key of THOUGHTS) if (others[key]) parts.push(part({ [key]: others[key] }));
  const words: Json = content === null ? {} : { content };
  for (const [key, value] of Object.entries(others)) {
    if (value !== null && !(THOUGHTS.includes(key) && value)) setMember(words, key, value);
  }
  if (Object.keys(words).length > 0 || logprobs !== null) parts.push(part(words, logprobs));
  for (const [at, call] of ((calls ?? []) as unknown[]).entries()) {
    if (!isObject(call)) return undefined;
    parts.push(part({ tool_calls: [{ index: at, ...call }] }));
  }
  parts.push({ index, delta: {}, logprobs: null, finish_reason, ...said(more) });
  return parts;
}

function textParts(choice: Json): Json[] | undefined {
  const { index, text, logprobs = null, finish_reason, ...more } = choice;
  if (typeof text !== 'string') return undefined;
  return [
    { index, text, logprobs, finish_reason: null },
    { index, text: '', logprobs: null, finish_reason, ...said(more) },
  ];
}

/** Without what is null. */
function said(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
