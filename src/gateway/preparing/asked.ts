import { isUtf8 } from 'node:buffer';
import { type CanonicalMember, canonicalMembers, canonicalObject } from '../../protocols/canonical-json.ts';
import { type InferCall, readInferCall } from '../../protocols/oip/tensors.ts';
import { hasTwice } from '../batching/pieces.ts';

/** OpenAI's own bound. */
const INPUTS_MAX = 2048;
const TOKEN_ID_MAX = 2 ** 31 - 1;
/** What an embeddings request may say where vectors are made of tensors: there is no engine to pass the rest on to. */
const KNOWN = ['model', 'input', 'encoding_format', 'dimensions', 'user'];

/** What a request gives to be prepared. */
export interface Asked {
  /** Texts, or what the caller has made tokens of already. */
  inputs: readonly (string | readonly number[])[];
  /** What requests have to agree in to go together. */
  key: string;
  /** Of embeddings: all members but the input, as an object. */
  rest: string;
  base64: boolean;
  dimensions: number | undefined;
  /** Of an inference request. */
  infer: InferCall | undefined;
}

export interface BadAsk {
  message: string;
  param: string | undefined;
}

/** Reads an embeddings request. `isForTensors`: nothing of it is passed on. */
export function readEmbeddings(body: Buffer, isForTensors: boolean): Asked | BadAsk {
  const members = isUtf8(body) ? canonicalMembers(body.toString('utf8')) : undefined;
  if (!members) return bad('We could not parse the body of your request.');
  if (hasTwice(members)) return bad('A member of the request is given twice.');
  const input = members.find(({ key }) => key === 'input');
  const inputs = input && readInputs(JSON.parse(input.value));
  if (!inputs) {
    return bad(
      `The member 'input' must be a text, the ids of its tokens, or a list of 1 to ${INPUTS_MAX} of either, none of them empty.`,
      'input',
    );
  }
  const rest = canonicalObject(members.filter((member) => member !== input));
  const asked = { inputs, key: rest, rest, base64: false, dimensions: undefined, infer: undefined };
  return isForTensors ? forTensors(asked, members) : asked;
}

function forTensors(asked: Asked, members: readonly CanonicalMember[]): Asked | BadAsk {
  const unknown = members.find(({ key }) => !KNOWN.includes(key));
  if (unknown) return bad(`Unrecognized request argument supplied: ${unknown.key}`, unknown.key);
  const given = (name: string): unknown => {
    const member = members.find(({ key }) => key === name);
    return member && JSON.parse(member.value);
  };
  const format = given('encoding_format') ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    return bad("The member 'encoding_format' must be 'float' or 'base64'.", 'encoding_format');
  }
  const dimensions = given('dimensions') ?? undefined;
  if (dimensions !== undefined && !Number.isSafeInteger(dimensions)) {
    return bad("The member 'dimensions' must be a whole number.", 'dimensions');
  }
  return { ...asked, key: '', base64: format === 'base64', dimensions: dimensions as number | undefined };
}

function readInputs(value: unknown): Asked['inputs'] | undefined {
  const isOne = typeof value === 'string' || (Array.isArray(value) && value.every(Number.isSafeInteger));
  const list = isOne ? [value] : value;
  if (!Array.isArray(list) || list.length === 0 || list.length > INPUTS_MAX) return undefined;
  return list.every(isInput) ? list : undefined;
}

function isInput(item: unknown): item is string | number[] {
  if (typeof item === 'string') return item !== '';
  return Array.isArray(item) && item.length > 0 && item.every(isTokenId);
}

function isTokenId(id: unknown): boolean {
  return Number.isSafeInteger(id) && (id as number) >= 0 && (id as number) <= TOKEN_ID_MAX;
}

/** The prompts of a completion that are texts; undefined where it has none, and goes as it is. */
export function readPrompts(value: unknown): string[] | undefined {
  if (typeof value === 'string') return [value];
  if (!Array.isArray(value) || value.length === 0 || value.length > INPUTS_MAX) return undefined;
  return value.every((each) => typeof each === 'string') ? value : undefined;
}

/** Reads an inference request whose one input is texts; undefined where it is another, and goes as it is. */
export function readTexts(body: Buffer, headerLength: string | undefined): Asked | undefined {
  const infer = readInferCall(body, headerLength);
  if (typeof infer === 'string' || infer.inputs.length !== 1) return undefined; // the engine says what is wrong
  const [{ datatype, shape, data }] = infer.inputs as [InferCall['inputs'][number]];
  const isList = shape.length === 1 || (shape.length === 2 && shape[1] === 1);
  if (datatype !== 'BYTES' || !isList || shape[0] === 0 || shape[0]! > INPUTS_MAX) return undefined;
  const inputs: string[] = [];
  for (let at = 0; at < data.length; ) {
    const end = at + 4 + data.readUInt32LE(at);
    inputs.push(data.toString('utf8', at + 4, end));
    at = end;
  }
  const key = JSON.stringify(['infer', infer.outputs?.map(({ name }) => name)]);
  return { inputs, key, rest: '{}', base64: false, dimensions: undefined, infer };
}

function bad(message: string, param?: string): BadAsk {
  return { message, param };
}
