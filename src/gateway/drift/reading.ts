import type { Observation } from '../../links/messages.ts';
import { readInferCall, readInferOutputs, type Tensor, valuesOf } from '../../protocols/oip/tensors.ts';
import { AnswerAssembly } from '../../protocols/openai/answer-assembly.ts';
import { EventSplitter } from '../../protocols/openai/event-splitter.ts';
import { eventData } from '../../protocols/openai/events.ts';
import type { HeardAnswer } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { projected } from './projected.ts';
import type { DriftRules } from './rules.ts';
import { entropy, tokenChances } from './token-chances.ts';

type Json = Record<string, unknown>;
type Seen = Pick<Observation, 'values' | 'texts' | 'score' | 'class'>;

/** Texts are told so far: enough to find their language in. */
const TEXT_MAX = 300;
/** Longer bodies of requests are not read once more. */
const BODY_BYTES_MAX = 1024 * 1024;
/** What is told of a category. */
const CATEGORY_MAX = 48;
/** Classes whose probabilities are looked at. */
const CLASSES_MAX = 1000;

/** What a request and its answer are told by: null where a value should be and is not. */
export function readSeen(rules: DriftRules, x: Exchange, answer: HeardAnswer): Seen {
  const seen: Seen = { values: {} };
  const { features } = rules;
  if (features.has('promptTokens')) seen.values['promptTokens'] = x.tokensIn ?? null;
  const call = x.call!;
  if (call.protocol === 'oip') readTensors(rules, x, call.headerLength, answer, seen);
  else if (call.kind === 'embeddings') {
    if (features.has('embedding')) seen.values['embedding'] = firstEmbedding(parsed(answer.body));
  } else {
    if (features.has('answerTokens')) seen.values['answerTokens'] = x.tokensOut ?? null;
    readWords(features, call.kind, answer, seen);
  }
  if (features.has('promptLanguage') && call.protocol === 'openai') {
    const text = promptText(parsed(x.caller.body.subarray(0, BODY_BYTES_MAX + 1)));
    if (text !== undefined) seen.texts = { ...seen.texts, promptLanguage: text };
  }
  return seen;
}

function readWords(
  features: ReadonlySet<string>,
  kind: 'chat' | 'completions',
  answer: HeardAnswer,
  seen: Seen,
): void {
  const document = answer.streamed ? assembled(answer.body, kind) : parsed(answer.body);
  const choice = firstOf(document?.['choices']);
  const { values } = seen;
  if (features.has('finishReason'))
    values['finishReason'] = textOf(choice?.['finish_reason'])?.slice(0, CATEGORY_MAX) ?? null;
  if (features.has('answerLanguage')) {
    const words = textOf((choice?.['message'] as Json | undefined)?.['content']) ?? textOf(choice?.['text']);
    if (words) seen.texts = { answerLanguage: words.slice(0, TEXT_MAX) };
  }
  const chances = choice && tokenChances(choice);
  // An answer tells them only where it was asked to: that it does not is no change.
  if (!chances) return;
  seen.score = Math.exp(chances.meanLogprob);
  if (features.has('confidence')) values['confidence'] = chances.meanLogprob;
  if (features.has('entropy') && chances.entropy !== undefined) values['entropy'] = chances.entropy;
}

function readTensors(
  { features, inputs, inputShapes, outputs, score }: DriftRules,
  x: Exchange,
  headerLength: string | undefined,
  answer: HeardAnswer,
  seen: Seen,
): void {
  if (inputs.size > 0 || inputShapes.size > 0) {
    const call = readInferCall(x.caller.body, headerLength);
    const given = typeof call === 'string' ? [] : call.inputs;
    for (const [name, feature] of inputs) seen.values[feature] = firstElement(find(given, name));
    for (const [name, feature] of inputShapes)
      seen.values[feature] = find(given, name)?.shape.join('x').slice(0, CATEGORY_MAX) ?? null;
  }
  if (outputs.size === 0 && score === undefined) return;
  const read = readInferOutputs(answer.body, answer.jsonBytes);
  const given = typeof read === 'string' ? [] : read;
  for (const [name, feature] of outputs) seen.values[feature] = firstElement(find(given, name));
  if (score === undefined) return;
  const chances = chancesOf(find(given, score));
  const most = chances?.reduce((best, each, at) => (each > chances[best]! ? at : best), 0) ?? -1;
  if (chances) Object.assign(seen, { score: chances[most]!, class: String(most) });
  if (features.has('confidence')) seen.values['confidence'] = chances?.[most] ?? null;
  if (features.has('entropy')) seen.values['entropy'] = chances ? entropy(chances) : null;
  if (features.has('class')) seen.values['class'] = chances ? String(most) : null;
}

/** The first row of the tensor, where it is one of probabilities. */
function chancesOf(tensor: Tensor | undefined): number[] | undefined {
  const classes = tensor?.shape.at(-1) ?? 0;
  if (!tensor || classes === 0 || classes > CLASSES_MAX) return undefined;
  const row = valuesOf(tensor, classes);
  const areChances = row.every((each) => typeof each === 'number' && each >= 0 && each <= 1.0001);
  return areChances ? (row as number[]) : undefined;
}

function firstElement(tensor: Tensor | undefined): number | string | null {
  if (!tensor) return null;
  const [value] = valuesOf(tensor, 1);
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'string') return value.slice(0, CATEGORY_MAX);
  return typeof value === 'number' ? value : null;
}

const find = (tensors: readonly Tensor[], name: string) => tensors.find((each) => each.name === name);

function firstEmbedding(document: Json | undefined): number[] | null {
  const vector = firstOf(document?.['data'])?.['embedding'];
  if (Array.isArray(vector) && vector.length > 0 && vector.every((each) => typeof each === 'number'))
    return projected(vector);
  if (typeof vector !== 'string') return null;
  const bytes = Buffer.from(vector, 'base64');
  const floats = Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readFloatLE(i * 4));
  return floats.length > 0 && floats.every(Number.isFinite) ? projected(floats) : null;
}

/** What was said last, of a chat; the prompt, of a completion. */
function promptText(body: Json | undefined): string | undefined {
  const { messages, prompt } = body ?? {};
  const said = Array.isArray(messages) ? (messages.at(-1) as Json | null)?.['content'] : prompt;
  const parts = Array.isArray(said) ? said : [said];
  const text = parts
    .map((part) => (typeof part === 'string' ? part : textOf((part as Json | null)?.['text'])) ?? '')
    .join(' ')
    .trim();
  return text === '' ? undefined : text.slice(0, TEXT_MAX);
}

function assembled(events: Buffer, kind: 'chat' | 'completions'): Json | undefined {
  const assembly = new AnswerAssembly(kind);
  for (const event of new EventSplitter().push(events)) {
    const data = eventData(event);
    if (data !== undefined) assembly.add(data);
  }
  return assembly.finish();
}

function parsed(body: Buffer): Json | undefined {
  if (body.length > BODY_BYTES_MAX) return undefined;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined; // whoever asked or answered so is told elsewhere; here there is no value
  }
}

const firstOf = (list: unknown) =>
  Array.isArray(list) && typeof list[0] === 'object'
    ? ((list[0] ?? undefined) as Json | undefined)
    : undefined;

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined);
