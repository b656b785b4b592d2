import { isObject, type Json, parsedObject } from '../../protocols/json-object.ts';
import { oipPath } from '../../protocols/oip/paths.ts';
import {
  type Filling,
  StageFault,
  type StageItem,
  type StageKind,
  type StageSettings,
  type StageValue,
} from './contracts.ts';
import { isVector } from './embeddings.ts';
import { itemsOf } from './items.ts';

type TensorSettings = NonNullable<StageSettings['tensors']>[string];
type Scalar = string | number | boolean;

/** How far a sum of shares may be from 1 to be taken for probabilities. */
const ROUNDING = 0.01;

/** A model of tensors, over the Open Inference Protocol. */
export const tensors: StageKind = {
  name: 'tensors',
  streams: false,
  ask(stage, route, filling) {
    const asked: Asked = { items: undefined };
    const inputs = Object.entries(stage.tensors ?? {}).map(([name, tensor]) => ({
      name,
      ...filledTensor(name, tensor, filling, asked),
    }));
    const { items } = asked;
    if (items?.length === 0) return { value: { text: '', items: [] } };
    const request: Json = { inputs };
    if (stage.output !== undefined) request['outputs'] = [{ name: stage.output }];
    if (Object.keys(stage.parameters).length > 0) request['parameters'] = stage.parameters;
    const body = Buffer.from(JSON.stringify(request));
    return { target: oipPath('infer', route, undefined), body, ...(items && { items }) };
  },
  read(stage, body, { items }) {
    const outputs = readOutputs(body);
    if (!outputs) return undefined;
    const output =
      outputs.find(({ name }) => name === stage.output) ??
      (stage.output === undefined ? outputs[0] : undefined);
    if (!output) return undefined;
    const json = Object.fromEntries(outputs.map(({ name, data }) => [name, data]));
    const value = items ? readEach(output, stage, items) : readOne(output, stage);
    return value && { ...value, json };
  },
};

interface Asked {
  /** The items of the first input that has any. */
  items: StageItem[] | undefined;
}

function filledTensor(name: string, tensor: TensorSettings, filling: Filling, asked: Asked): Json {
  if ('texts' in tensor) {
    const items = itemsOf(filling, tensor.texts, `tensors.${name}.texts`);
    asked.items ??= items;
    const shape = tensor.shape === 'n' ? [items.length] : [items.length, 1];
    return { datatype: 'BYTES', shape, data: items.map(({ text }) => text) };
  }
  if ('vectors' in tensor) {
    const vectors = filling.stage(tensor.vectors)?.vectors;
    if (!vectors || vectors.length === 0)
      throw new StageFault(`stage \`${tensor.vectors}\` has given no vectors`);
    return { datatype: tensor.datatype, shape: [vectors.length, vectors[0]!.length], data: vectors.flat() };
  }
  const { datatype } = tensor;
  const values = Array.isArray(tensor.data) ? tensor.data : [tensor.data];
  const data = values.map((value) => filledElement(value, datatype, name, filling));
  const shape = tensor.shape ?? [data.length];
  const places = shape.reduce((product, length) => product * length, 1);
  if (places !== data.length) {
    throw new StageFault(
      `tensor \`${name}\` has ${data.length} elements for the shape [${shape.join(', ')}]`,
    );
  }
  return { datatype, shape, data };
}

function filledElement(value: Scalar, datatype: string, name: string, filling: Filling): Scalar {
  const filled = typeof value === 'string' ? filling.text(value) : value;
  if (datatype === 'BYTES') return String(filled);
  if (datatype === 'BOOL') {
    const text = String(filled).trim().toLowerCase();
    if (text === 'true' || text === '1') return true;
    if (text === 'false' || text === '0') return false;
    throw new StageFault(`tensor \`${name}\` is of BOOL, and ${shown(filled)} is neither true nor false`);
  }
  const number = typeof filled === 'string' && filled.trim() === '' ? Number.NaN : Number(filled);
  const whole = datatype.includes('INT');
  if (!(whole ? Number.isSafeInteger(number) : Number.isFinite(number))) {
    throw new StageFault(
      `tensor \`${name}\` is of ${datatype}, and ${shown(filled)} is no ${whole ? 'whole ' : ''}number`,
    );
  }
  return number;
}

function shown(value: Scalar): string {
  return JSON.stringify(typeof value === 'string' ? value.slice(0, 40) : value);
}

interface Output {
  name: string;
  datatype: string;
  shape: number[];
  data: Scalar[];
}

function readOutputs(body: Buffer): Output[] | undefined {
  const list = parsedObject(body)?.['outputs'];
  if (!Array.isArray(list) || list.length === 0) return undefined;
  const outputs: Output[] = [];
  for (const output of list as unknown[]) {
    if (!isObject(output)) return undefined;
    const { name, datatype, shape, data } = output;
    if (typeof name !== 'string' || typeof datatype !== 'string') return undefined;
    if (!Array.isArray(shape) || !shape.every((length) => Number.isSafeInteger(length) && length >= 0))
      return undefined;
    if (!Array.isArray(data)) return undefined;
    // Rows in rows are allowed, and mean the same.
    const flat = (data as unknown[]).flat(Number.POSITIVE_INFINITY) as unknown[];
    const scalar = datatype === 'BYTES' ? 'string' : datatype === 'BOOL' ? 'boolean' : 'number';
    if (!flat.every((value) => typeof value === scalar)) return undefined;
    const places = (shape as number[]).reduce((product, length) => product * length, 1);
    if (places !== flat.length) return undefined;
    outputs.push({ name, datatype, shape: shape as number[], data: flat as Scalar[] });
  }
  return outputs;
}

/** What an output says about one input; undefined where it says nothing that can be read so. */
function readOne({ datatype, shape, data }: Output, stage: StageSettings): StageValue | undefined {
  if (datatype === 'BYTES') return readTexts(data as string[], stage);
  const numbers = data.map(Number);
  if (stage.labels) return readClass(numbers, datatype, stage.labels);
  if (numbers.length === 1) return { text: '', score: numbers[0]! };
  const vectors = rowsOf(numbers, shape);
  return vectors ? { text: '', vectors } : { text: '' };
}

function readTexts(texts: string[], { labels }: StageSettings): StageValue | undefined {
  if (texts.length === 0) return undefined;
  const text = texts.join('\n');
  if (labels) return texts.length === 1 && labels.includes(text) ? { text, class: text } : undefined;
  return texts.length === 1 ? { text } : { text, items: texts.map((each) => ({ text: each })) };
}

/** What an output says about each of several inputs: as many rows as there are items. */
function readEach(output: Output, stage: StageSettings, items: readonly StageItem[]): StageValue | undefined {
  const { datatype, shape, data } = output;
  if (data.length === 0 || data.length % items.length !== 0) return undefined;
  const width = data.length / items.length;
  const found: StageItem[] = [];
  for (const [i, item] of items.entries()) {
    const row = { ...output, shape: [width], data: data.slice(i * width, (i + 1) * width) };
    const value = readOne(row, stage);
    if (!value) return undefined;
    const { score } = value;
    found.push({
      ...item,
      // Texts of a model are an answer about the item; a class or a number leaves the item what it was.
      ...(datatype === 'BYTES' && !stage.labels && { text: value.text, input: item.text }),
      ...(value.class !== undefined && { class: value.class }),
      ...(score !== undefined && { score }),
    });
  }
  const vectors = datatype === 'BYTES' || stage.labels ? undefined : rowsOf(data.map(Number), shape);
  const text = found.map((item) => item.text).join('\n');
  return vectors && vectors.length === items.length && width > 1
    ? { text, items: found, vectors }
    : { text, items: found };
}

/** A row of numbers each, where the shape says that there are rows. */
function rowsOf(numbers: number[], shape: number[]): number[][] | undefined {
  const inner = shape.filter((length, i) => length !== 1 || i === shape.length - 1);
  const width = inner.at(-1) ?? 0;
  if (inner.length === 0 || inner.length > 2 || width === 0) return undefined;
  const rows: number[][] = [];
  for (let at = 0; at < numbers.length; at += width) rows.push(numbers.slice(at, at + width));
  return rows.every(isVector) ? rows : undefined;
}

/** The likeliest label, from probabilities, logits, the number of a class, or the probability of the second of two. */
function readClass(
  numbers: readonly number[],
  datatype: string,
  labels: readonly string[],
): StageValue | undefined {
  if (!numbers.every(Number.isFinite)) return undefined;
  const of = (index: number, score?: number): StageValue | undefined => {
    const name = labels[index];
    return name === undefined
      ? undefined
      : { text: name, class: name, ...(score !== undefined && { score }) };
  };
  if (numbers.length === 1) {
    const [value] = numbers as [number];
    if (datatype === 'BOOL' || datatype.includes('INT')) return of(value);
    if (labels.length !== 2) return Number.isInteger(value) ? of(value) : undefined;
    const second = value >= 0 && value <= 1 ? value : 1 / (1 + Math.exp(-value));
    return second > 0.5 ? of(1, second) : of(0, 1 - second);
  }
  if (numbers.length !== labels.length) return undefined;
  const shares = asShares(numbers);
  let best = 0;
  for (let i = 1; i < shares.length; i++) if (shares[i]! > shares[best]!) best = i;
  return of(best, shares[best]!);
}

/** Probabilities as they are; of logits their softmax. */
function asShares(numbers: readonly number[]): number[] {
  const sum = numbers.reduce((total, number) => total + number, 0);
  if (numbers.every((number) => number >= 0 && number <= 1) && Math.abs(sum - 1) <= ROUNDING)
    return [...numbers];
  const most = numbers.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const powers = numbers.map((number) => Math.exp(number - most));
  const all = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / all);
}
