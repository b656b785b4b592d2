import type { Arrival } from './contracts.ts';

/** Bytes that stand for one token: what simulated engines and the reckoning of costs both count by. */
const BYTES_PER_TOKEN = 4;
/** Role and separators of a message, as simulated engines count them. */
export const FRAME_TOKENS = 3;
const FILLER = Buffer.alloc(4 * 1024 * 1024, 'sim ');
const CHAT_TAIL = '"}]}';
const EMBEDDINGS_TAIL = '"}';

/**
 * The body that a caller sends: as long as one with so many tokens would be, and unlike every other one, so that nothing
 * finds it in a cache, save where it has a subject. What it says is `serial` or the subject, and filler.
 */
export function requestBody(arrival: Arrival, serial: number): Buffer {
  const { route, kind, promptTokens, outputTokens, outputTokensMax, stream, subject } = arrival;
  const name = subject === undefined ? String(serial) : `subject ${subject}`;
  let head = `{"model":${JSON.stringify(route)}`;
  if (kind === 'chat') {
    if (subject !== undefined) head += ',"temperature":0';
    if (outputTokensMax !== undefined) head += `,"max_tokens":${outputTokensMax}`;
    // What the model would say is the simulation's to know; an engine of its own reads it, and any other member passes.
    if (outputTokensMax !== outputTokens) head += `,"simulated_tokens":${outputTokens}`;
    if (stream) head += ',"stream":true,"stream_options":{"include_usage":true}';
    head += `,"messages":[{"role":"user","content":"${name} `;
  } else head += `,"input":"${name} `;
  const tail = kind === 'chat' ? CHAT_TAIL : EMBEDDINGS_TAIL;
  const said = name.length + 1;
  const filler = Math.max(0, Math.min(FILLER.length, BYTES_PER_TOKEN * promptTokens - 1 - said));
  const body = Buffer.allocUnsafe(head.length + filler + tail.length);
  let at = body.write(head, 'latin1');
  at += FILLER.copy(body, at, 0, filler);
  body.write(tail, at, 'latin1');
  return body;
}

/** What an engine is asked to do. */
export interface Order {
  jobs: { promptTokens: number; outputTokens: number }[];
  stream: boolean;
  includeUsage: boolean;
}

const MESSAGES = Buffer.from('"messages":[');
/** Tokens of an answer whose length nobody asked for. */
const ANSWER_TOKENS = 64;

/** Reads a body made by `requestBody`, perhaps changed on its way, as the simulated host reads it. */
export function readChatOrder(body: Buffer): Order {
  const at = body.indexOf(MESSAGES);
  const head = body.toString('latin1', 0, at);
  const asked = numberIn(head, '"max_tokens":') ?? numberIn(head, '"max_completion_tokens":');
  const said = numberIn(head, '"simulated_tokens":');
  const outputTokens = Math.min(said ?? asked ?? ANSWER_TOKENS, asked ?? Number.POSITIVE_INFINITY);
  const content = body.indexOf('"content":"', at, 'latin1') + '"content":"'.length;
  const end = body.lastIndexOf('"');
  const promptTokens = FRAME_TOKENS + Math.ceil((end - content) / BYTES_PER_TOKEN);
  return {
    jobs: [{ promptTokens, outputTokens }],
    stream: head.includes('"stream":true'),
    includeUsage: head.includes('"include_usage":true'),
  };
}

/** The same for embeddings: one text, or the texts of several callers together. */
export function readEmbeddingsOrder(body: Buffer): Order {
  const { input } = JSON.parse(body.toString('utf8')) as { input: string | string[] };
  const texts = typeof input === 'string' ? [input] : input;
  const tokensOf = (text: string) => Math.max(1, Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN));
  return {
    jobs: texts.map((text) => ({ promptTokens: tokensOf(text), outputTokens: 0 })),
    stream: false,
    includeUsage: false,
  };
}

function numberIn(head: string, key: string): number | undefined {
  const at = head.indexOf(key);
  if (at < 0) return undefined;
  const value = Number.parseInt(head.slice(at + key.length, at + key.length + 12), 10);
  return value > 0 ? value : undefined;
}
