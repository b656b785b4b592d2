/** Reads and writes the tensors of inference requests and answers, as JSON and in the binary tensor extension. */

/** Bytes of one element; 0 for BYTES, whose elements carry a length of their own. */
export const ELEMENT_BYTES = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BF16: 2,
  BYTES: 0,
} as const;

export type Datatype = keyof typeof ELEMENT_BYTES;

/** Dimensions of one tensor. */
const RANK_MAX = 32;

export interface Tensor {
  name: string;
  datatype: Datatype;
  shape: number[];
  /** Row-major and little-endian; an element of BYTES is its length in four bytes and then itself. */
  data: Buffer;
}

export interface InferCall {
  id: string | undefined;
  inputs: Tensor[];
  /** Undefined where every output is wanted. */
  outputs: { name: string; binary: boolean | undefined }[] | undefined;
  /** Whether outputs that do not say so themselves go out in binary. */
  binaryOutputs: boolean;
}

type Json = Record<string, unknown>;

class Unreadable extends Error {}

/**
 * Reads an inference request. `headerLength` is the value of Inference-Header-Content-Length where it was sent. The
 * result is a message where the request cannot be read.
 */
export function readInferCall(body: Buffer, headerLength: string | undefined): InferCall | string {
  try {
    const jsonEnd = headerLength === undefined ? body.length : Number(headerLength);
    if (!Number.isSafeInteger(jsonEnd) || jsonEnd < 1 || jsonEnd > body.length) {
      return 'Inference-Header-Content-Length must be the length of the JSON part of the body';
    }
    return readCall(parseObject(body.toString('utf8', 0, jsonEnd)), body.subarray(jsonEnd));
  } catch (error) {
    if (error instanceof Unreadable) return error.message;
    throw error;
  }
}

/** An inference answer; `headerLength` is set where raw tensors follow the JSON. */
export function writeInferAnswer(
  head: { model: string; version: string; id: string | undefined },
  outputs: { tensor: Tensor; binary: boolean }[],
): { body: Buffer; headerLength: number | undefined } | string {
  const raw: Buffer[] = [];
  const described: Json[] = [];
  for (const { tensor, binary } of outputs) {
    const { name, datatype, shape, data } = tensor;
    if (binary) {
      raw.push(data);
      described.push({ name, datatype, shape, parameters: { binary_data_size: data.length } });
    } else {
      const values = toJson(tensor);
      if (values === undefined)
        return `output '${name}' is ${datatype}, which can only be sent as binary data`;
      described.push({ name, datatype, shape, data: values });
    }
  }
  const json = Buffer.from(
    JSON.stringify({
      ...(head.id !== undefined && { id: head.id }),
      model_name: head.model,
      model_version: head.version,
      outputs: described,
    }),
  );
  if (raw.length === 0) return { body: json, headerLength: undefined };
  return { body: Buffer.concat([json, ...raw]), headerLength: json.length };
}

function parseObject(text: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Unreadable(`the request is not JSON: ${(error as Error).message}`);
  }
  return object(value, 'the request');
}

function object(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Unreadable(`${what} must be an object`);
  }
  return value as Json;
}

function readCall(request: Json, raw: Buffer): InferCall {
  if (!Array.isArray(request.inputs) || request.inputs.length === 0) {
    throw new Unreadable('inputs must be a list of one tensor or more');
  }
  const inputs = readTensors(request.inputs, raw);
  return {
    id: typeof request.id === 'string' ? request.id : undefined,
    inputs,
    outputs: readOutputs(request.outputs),
    binaryOutputs: parameter(request, 'binary_data_output') === true,
  };
}

/** Tensors of a request, or of an answer: their data in the JSON, or behind it in their order. */
function readTensors(list: readonly unknown[], raw: Buffer): Tensor[] {
  let at = 0;
  const tensors = list.map((value: unknown) => {
    const tensor = readTensorHead(value);
    const size = parameter(value as Json, 'binary_data_size');
    if (size === undefined) return { ...tensor, data: fromJson(tensor, (value as Json).data) };
    if (!Number.isSafeInteger(size) || (size as number) < 0 || at + (size as number) > raw.length) {
      throw new Unreadable(`input '${tensor.name}': binary_data_size does not fit the body`);
    }
    const data = raw.subarray(at, (at += size as number));
    checkBinary(tensor, data);
    return { ...tensor, data };
  });
  if (at !== raw.length) throw new Unreadable(`${raw.length - at} bytes follow the tensors of the request`);
  return tensors;
}

/** Reads the outputs of an inference answer; `headerLength` as in a request. A message where they cannot be read. */
export function readInferOutputs(body: Buffer, headerLength: string | undefined): Tensor[] | string {
  const jsonEnd = headerLength === undefined ? body.length : Number(headerLength);
  if (!Number.isSafeInteger(jsonEnd) || jsonEnd < 1 || jsonEnd > body.length) return 'it has no JSON';
  try {
    const { outputs } = parseObject(body.toString('utf8', 0, jsonEnd));
    if (!Array.isArray(outputs)) return 'it has no outputs';
    return readTensors(outputs, body.subarray(jsonEnd));
  } catch (error) {
    if (error instanceof Unreadable) return error.message;
    throw error;
  }
}

function readOutputs(outputs: unknown): InferCall['outputs'] {
  if (outputs === undefined) return undefined;
  if (!Array.isArray(outputs)) throw new Unreadable('outputs must be a list');
  return outputs.map((value: unknown) => {
    const output = object(value, 'an output');
    if (typeof output.name !== 'string') throw new Unreadable('an output must have a name');
    const binary = parameter(output, 'binary_data');
    return { name: output.name, binary: typeof binary === 'boolean' ? binary : undefined };
  });
}

function parameter(holder: Json, name: string): unknown {
  return (holder.parameters as Json | null | undefined)?.[name];
}

function readTensorHead(value: unknown): Omit<Tensor, 'data'> {
  const input = object(value, 'an input');
  const { name, datatype, shape } = input;
  if (typeof name !== 'string' || name === '') throw new Unreadable('an input must have a name');
  if (typeof datatype !== 'string' || !Object.hasOwn(ELEMENT_BYTES, datatype)) {
    throw new Unreadable(`input '${name}': datatype must be one of ${Object.keys(ELEMENT_BYTES).join(', ')}`);
  }
  const isShape = Array.isArray(shape) && shape.length <= RANK_MAX;
  if (!isShape || !shape.every((size) => Number.isSafeInteger(size) && size >= 0)) {
    throw new Unreadable(`input '${name}': shape must be a list of whole numbers`);
  }
  return { name, datatype: datatype as Datatype, shape };
}

/** Elements of a tensor of this shape. */
export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function checkBinary({ name, datatype, shape }: Omit<Tensor, 'data'>, data: Buffer): void {
  const expected = elementsOf(shape);
  const elements = datatype === 'BYTES' ? countBytes(name, data) : data.length / ELEMENT_BYTES[datatype];
  if (elements !== expected) {
    throw new Unreadable(`input '${name}': ${expected} elements by its shape, ${elements} by its data`);
  }
}

function countBytes(name: string, data: Buffer): number {
  let count = 0;
  for (let at = 0; at < data.length; count++) {
    if (at + 4 > data.length) throw new Unreadable(`input '${name}': an element's length is cut off`);
    at += 4 + data.readUInt32LE(at);
    if (at > data.length) throw new Unreadable(`input '${name}': an element is cut off`);
  }
  return count;
}

/** Tensors may be nested lists or flat ones. */
function fromJson(tensor: Omit<Tensor, 'data'>, data: unknown): Buffer {
  const { name, datatype, shape } = tensor;
  if (!Array.isArray(data)) throw new Unreadable(`input '${name}': data must be a list`);
  const values = data.flat(RANK_MAX) as unknown[];
  if (values.length !== elementsOf(shape)) {
    throw new Unreadable(
      `input '${name}': ${elementsOf(shape)} elements by its shape, ${values.length} in data`,
    );
  }
  if (datatype === 'FP16' || datatype === 'BF16') {
    throw new Unreadable(`input '${name}': ${datatype} can only be sent as binary data`);
  }
  if (datatype === 'BYTES') return Buffer.concat(values.flatMap((value) => bytesElement(name, value)));
  const bytes = Buffer.alloc(values.length * ELEMENT_BYTES[datatype]);
  values.forEach((value, index) => {
    writeElement(tensor, bytes, index, value);
  });
  return bytes;
}

function bytesElement(name: string, value: unknown): Buffer[] {
  if (typeof value !== 'string') throw new Unreadable(`input '${name}': each element must be a text`);
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return [length, bytes];
}

function writeElement(
  { name, datatype }: Omit<Tensor, 'data'>,
  bytes: Buffer,
  index: number,
  value: unknown,
): void {
  const number = typeof value === 'boolean' ? Number(value) : value;
  if (typeof number !== 'number') throw new Unreadable(`input '${name}': each element must be a number`);
  if (datatype === 'FP32') {
    bytes.writeFloatLE(number, index * 4);
    return;
  }
  if (datatype === 'FP64') {
    bytes.writeDoubleLE(number, index * 8);
    return;
  }
  const [low, high] = bounds(datatype);
  if (!Number.isSafeInteger(number) || number < low || number > high) {
    throw new Unreadable(
      `input '${name}': ${number} is no ${datatype} that JSON can carry exactly; send it as binary data`,
    );
  }
  const size = ELEMENT_BYTES[datatype];
  if (size === 8) bytes.writeBigInt64LE(BigInt(number), index * 8);
  else if (low < 0) bytes.writeIntLE(number, index * size, size);
  else bytes.writeUIntLE(number, index * size, size);
}

function bounds(datatype: Datatype): [number, number] {
  if (datatype === 'BOOL') return [0, 1];
  const bits = ELEMENT_BYTES[datatype] * 8;
  return datatype.startsWith('U') ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
}

/** Undefined for datatypes that have no sound form in JSON. */
export function toJson(tensor: Tensor): unknown[] | undefined {
  return tensor.datatype === 'FP16' || tensor.datatype === 'BF16' ? undefined : valuesOf(tensor);
}

/** The first values of a tensor of any datatype: numbers, texts or truth values. */
export function valuesOf({ datatype, data }: Tensor, valuesMax = Number.POSITIVE_INFINITY): unknown[] {
  const values: unknown[] = [];
  if (datatype === 'BYTES') {
    for (let at = 0; at < data.length && values.length < valuesMax; ) {
      const end = at + 4 + data.readUInt32LE(at);
      values.push(data.toString('utf8', at + 4, end));
      at = end;
    }
    return values;
  }
  const size = ELEMENT_BYTES[datatype];
  for (let at = 0; at < data.length && values.length < valuesMax; at += size)
    values.push(readElement(datatype, data, at, size));
  return values;
}

function readElement(datatype: Datatype, data: Buffer, at: number, size: number): unknown {
  if (datatype === 'BOOL') return data[at] !== 0;
  if (datatype === 'FP32') return data.readFloatLE(at);
  if (datatype === 'FP16') return float16(data.readUInt16LE(at));
  if (datatype === 'BF16') return bfloat16(data.readUInt16LE(at));
  if (datatype === 'FP64') return data.readDoubleLE(at);
  if (datatype === 'INT64') return Number(data.readBigInt64LE(at));
  if (datatype === 'UINT64') return Number(data.readBigUInt64LE(at));
  return datatype.startsWith('U') ? data.readUIntLE(at, size) : data.readIntLE(at, size);
}

const WORD = new DataView(new ArrayBuffer(4));

/** The upper half of a 32-bit float. */
function bfloat16(bits: number): number {
  WORD.setUint16(0, bits);
  WORD.setUint16(2, 0);
  return WORD.getFloat32(0);
}

function float16(bits: number): number {
  WORD.setUint16(0, bits);
  return WORD.getFloat16(0);
}
