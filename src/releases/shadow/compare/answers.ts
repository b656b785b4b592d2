import type { Call, HeardAnswer } from '../../../gateway/contracts.ts';
import { isObject, type Json, parsedObject } from '../../../protocols/json-object.ts';
import { readInferOutputs } from '../../../protocols/oip/tensors.ts';
import { AnswerAssembly } from '../../../protocols/openai/answer-assembly.ts';
import { EventSplitter } from '../../../protocols/openai/event-splitter.ts';
import { eventData } from '../../../protocols/openai/events.ts';
import type { Choice, ReadAnswer, ToolCall } from './contracts.ts';

/** Reads an answer to the call; undefined where it is none, or not whole. */
export function readAnswer(call: Call, heard: HeardAnswer): ReadAnswer | undefined {
  if (call.protocol === 'oip') {
    const tensors = readInferOutputs(heard.body, heard.jsonBytes);
    return typeof tensors === 'string' ? undefined : { kind: 'tensors', tensors };
  }
  if (call.kind === 'embeddings') return readVectors(parsedObject(heard.body));
  return readChoices(heard.streamed ? assembled(heard.body, call.kind) : parsedObject(heard.body));
}

/** The document that a stream of events would have been without streaming. */
function assembled(body: Buffer, kind: 'chat' | 'completions'): Json | undefined {
  const assembly = new AnswerAssembly(kind);
  const splitter = new EventSplitter();
  for (const event of [...splitter.push(body), ...splitter.push(Buffer.from('\n\n'))]) {
    const data = eventData(event);
    if (data !== undefined) assembly.add(data);
  }
  return assembly.finish();
}

export function readChoices(document: Json | undefined): ReadAnswer | undefined {
  const list = document?.['choices'];
  if (!Array.isArray(list) || list.length === 0 || !list.every(isObject)) return undefined;
  const inOrder = list.toSorted((a, b) => Number(a['index'] ?? 0) - Number(b['index'] ?? 0));
  return { kind: 'texts', choices: inOrder.map(readChoice) };
}

function readChoice(choice: Json): Choice {
  const message = isObject(choice['message']) ? choice['message'] : {};
  const said = [choice['text'], message['content'], message['refusal']];
  const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'] : [];
  const old = message['function_call'];
  return {
    text: said.filter((text) => typeof text === 'string').join(''),
    toolCalls: [
      ...calls.filter(isObject).map((call) => readToolCall(call['function'] ?? call['custom'])),
      ...(isObject(old) ? [readToolCall(old)] : []),
    ],
  };
}

function readToolCall(value: unknown): ToolCall {
  const called = isObject(value) ? value : {};
  const given = called['arguments'] ?? called['input'];
  return {
    name: String(called['name'] ?? ''),
    given: typeof given === 'string' ? readJson(given, given) : given,
  };
}

/** What a text says in JSON; `otherwise` where it is none. */
export function readJson(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise; // words
  }
}

export function readVectors(document: Json | undefined): ReadAnswer | undefined {
  const data = document?.['data'];
  if (!Array.isArray(data) || data.length === 0 || !data.every(isObject)) return undefined;
  const inOrder = data.toSorted((a, b) => Number(a['index'] ?? 0) - Number(b['index'] ?? 0));
  const vectors = inOrder.map(({ embedding }) => readVector(embedding));
  return vectors.includes(undefined) ? undefined : { kind: 'vectors', vectors: vectors as number[][] };
}

/** A list of numbers, or their 32-bit floats in base64, little-endian. */
function readVector(value: unknown): number[] | undefined {
  if (Array.isArray(value)) return value.every((each) => typeof each === 'number') ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const bytes = Buffer.from(value, 'base64');
  if (bytes.length % 4 !== 0) return undefined;
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}
