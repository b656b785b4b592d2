import { BrokenFile, type Inspection, TOLD_MAX } from './contracts.ts';
import type { Bytes } from './file-bytes.ts';
import { type Field, fieldsOf, numbersOf, textOf } from './protobuf.ts';

/** Fields of onnx/onnx.proto3. */
const MODEL = { irVersion: 1, producer: 2, producerVersion: 3, domain: 4, graph: 7, opset: 8 };
const GRAPH = { initializer: 5, input: 11, output: 12 };
const TENSOR = { dims: 1, dataType: 2, external: 13 };

const KINDS: Record<number, string> = {
  1: 'fp32',
  2: 'uint8',
  3: 'int8',
  4: 'uint16',
  5: 'int16',
  6: 'int32',
  7: 'int64',
  8: 'string',
  9: 'bool',
  10: 'fp16',
  11: 'fp64',
  12: 'uint32',
  13: 'uint64',
  14: 'complex64',
  15: 'complex128',
  16: 'bf16',
  17: 'fp8-e4m3',
  18: 'fp8-e4m3fnuz',
  19: 'fp8-e5m2',
  20: 'fp8-e5m2fnuz',
  21: 'uint4',
  22: 'int4',
  23: 'fp4',
};

/** Versions of the representation that may be; what is outside is something else that reads like a message. */
const IR_VERSION_MAX = 30;

/** Undefined where it is none: a model is a message with a version, a set of operators and a graph. */
export function inspectOnnx(file: Bytes): Inspection | undefined {
  const fields = topFields(file);
  const first = (number: number) => fields?.find((field) => field.number === number);
  const [irVersion, graph, opset] = [first(MODEL.irVersion), first(MODEL.graph), first(MODEL.opset)];
  if (!irVersion || !graph || !opset || irVersion.value < 1 || irVersion.value > IR_VERSION_MAX)
    return undefined;
  const told: Record<string, string | number> = { irVersion: irVersion.value };
  for (const key of ['producer', 'producerVersion', 'domain'] as const) {
    const field = first(MODEL[key]);
    const text = field && textOf(file, field, 200);
    if (text) told[key] = text;
  }
  try {
    for (const each of fields!.filter(({ number }) => number === MODEL.opset)) {
      const { domain, version } = opsetOf(file, each);
      told[`opset:${domain || 'ai.onnx'}`] = version;
    }
    return { format: 'onnx', told, ...inspectGraph(file, graph) };
  } catch (error) {
    throw new BrokenFile(`its graph cannot be read: ${(error as Error).message}`);
  }
}

function topFields(file: Bytes): Field[] | undefined {
  try {
    const fields: Field[] = [];
    for (const field of fieldsOf(file, 0, file.size)) {
      // A model has some dozen, and metadata.
      if (fields.push(field) > 10_000) return undefined;
    }
    return fields;
  } catch {
    return undefined; // no message at all
  }
}

function opsetOf(file: Bytes, { from, to }: Field): { domain: string; version: number } {
  const opset = { domain: '', version: 0 };
  for (const field of fieldsOf(file, from, to)) {
    if (field.number === 1) opset.domain = textOf(file, field, 200);
    if (field.number === 2) opset.version = field.value;
  }
  return opset;
}

function inspectGraph(file: Bytes, graph: Field): Partial<Inspection> {
  const numbers: Record<string, number> = {};
  const [inputs, outputs]: [string[], string[]] = [[], []];
  const external = new Set<string>();
  for (const field of fieldsOf(file, graph.from, graph.to)) {
    if (field.number === GRAPH.input) inputs.push(nameOf(file, field));
    else if (field.number === GRAPH.output) outputs.push(nameOf(file, field));
    else if (field.number === GRAPH.initializer) {
      const { kind, elements, location } = tensorOf(file, field);
      numbers[kind] = (numbers[kind] ?? 0) + elements;
      if (location !== undefined) external.add(location);
    }
  }
  return {
    numbers,
    inputs: inputs.slice(0, TOLD_MAX),
    outputs: outputs.slice(0, TOLD_MAX),
    ...(external.size > 0 && { external: [...external] }),
  };
}

function nameOf(file: Bytes, { from, to }: Field): string {
  for (const field of fieldsOf(file, from, to)) if (field.number === 1) return textOf(file, field, 200);
  return '';
}

function tensorOf(file: Bytes, { from, to }: Field) {
  let [elements, type] = [1, 0];
  let location: string | undefined;
  for (const field of fieldsOf(file, from, to)) {
    if (field.number === TENSOR.dims) for (const size of numbersOf(file, field)) elements *= size;
    else if (field.number === TENSOR.dataType) type = field.value;
    else if (field.number === TENSOR.external) {
      const { key, value } = entryOf(file, field);
      if (key === 'location') location = value;
    }
  }
  return { elements, kind: KINDS[type] ?? `onnx-${type}`, location };
}

function entryOf(file: Bytes, { from, to }: Field): { key: string; value: string } {
  const entry = { key: '', value: '' };
  for (const field of fieldsOf(file, from, to)) {
    if (field.number === 1) entry.key = textOf(file, field);
    if (field.number === 2) entry.value = textOf(file, field);
  }
  return entry;
}
