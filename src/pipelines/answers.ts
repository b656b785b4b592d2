import {
  type Call,
  type Exchange,
  type HeaderList,
  JSON_TYPE,
  STREAM_TYPE,
  without,
} from '../gateway/contracts.ts';
import {
  chatAnswer,
  chatAnswerStream,
  completionAnswer,
  completionAnswerStream,
} from '../protocols/openai/answer.ts';
import { answerStream } from '../protocols/openai/answer-stream.ts';
import type { StageValue } from './kinds/contracts.ts';
import { frameOip } from './oip.ts';
import type { PlannedStage } from './plan.ts';
import { documentAs } from './reframe.ts';

/** An answer as the caller asked for it. */
export interface Framed {
  headers: HeaderList;
  body: Buffer | string;
}

/** How the last stage's answer becomes the caller's. */
export interface Framing {
  /** The engine's own words are the answer; else it is made of what the stage found out. */
  passes: boolean;
  /** The stage is asked for a stream, which goes on as it comes. */
  streams: boolean;
  /** The engine's answer is of the other of OpenAI's two kinds of text. */
  reframes: boolean;
}

export function framingOf(call: Call, { kind, settings }: PlannedStage): Framing {
  const text = kind?.name === 'chat' || kind?.name === 'completions';
  const asked = call.kind === 'chat' || call.kind === 'completions';
  // What is read out of an answer, or put together of several, is not what the engine said.
  const own = settings.each === undefined && settings.classes === undefined;
  const passes = own && ((text && asked) || (kind?.name === 'embeddings' && call.kind === 'embeddings'));
  const streams = passes && text && call.stream && settings.stream;
  return { passes, streams, reframes: passes && text && kind?.name !== call.kind };
}

/** The whole answer of an engine, for this caller; undefined where it cannot be told so. */
export function frameDocument(
  x: Exchange,
  framing: Framing,
  headers: HeaderList,
  body: Buffer,
): Framed | undefined {
  const call = x.call!;
  if (!framing.reframes && !call.stream) return { headers, body };
  if (call.protocol !== 'openai' || call.kind === 'embeddings') return undefined;
  let document: unknown;
  try {
    document = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined; // no document: told as no answer
  }
  if (framing.reframes) document = documentAs(call.kind, document);
  if (document === undefined) return undefined;
  if (!call.stream) return { headers: withType(headers, JSON_TYPE), body: JSON.stringify(document) };
  const stream = answerStream(document, call.kind, call.request.usageAsked === true);
  return stream === undefined ? undefined : { headers: withType(headers, STREAM_TYPE), body: stream };
}

/** What a stage found out, as an answer of Armature's own; undefined where this caller cannot be told it. */
export function frame(x: Exchange, value: StageValue): Framed | undefined {
  const call = x.call!;
  if (call.protocol === 'oip') return frameOip(x, value);
  if (call.kind === 'embeddings') return undefined;
  const answer = { id: x.id, created: Math.floor(x.wallMs / 1000), model: call.route, text: value.text };
  if (call.stream) {
    const stream = call.kind === 'chat' ? chatAnswerStream : completionAnswerStream;
    return { headers: [...STREAM_TYPE], body: stream(answer, call.request.usageAsked === true) };
  }
  return { headers: [...JSON_TYPE], body: (call.kind === 'chat' ? chatAnswer : completionAnswer)(answer) };
}

/** What says something of one body alone. */
const OF_A_BODY = ['content-type', 'content-length', 'content-encoding', 'cache-control', 'etag'];

/** Headers of an answer whose body is another one now. */
function withType(headers: HeaderList, type: readonly string[]): HeaderList {
  return [...without(headers, ...OF_A_BODY), ...type];
}
