import type { StageItem, StageKind } from './contracts.ts';
import { itemsOf } from './items.ts';
import { isObject, parsedObject } from './json.ts';
import { inputOf } from './text.ts';

/** Numbers of one vector at most. */
const DIMENSIONS_MAX = 65_536;

/** Vectors of texts. Where the stage has classes, the vector of its input is compared with theirs: see flow/. */
export const embeddings: StageKind = {
  name: 'embeddings',
  streams: false,
  ask(stage, route, filling) {
    let items: StageItem[] | undefined;
    if (stage.inputs !== undefined) {
      items = itemsOf(filling.value(stage.inputs), 'inputs');
      if (items.length === 0) return { value: { text: '', vectors: [], items: [] } };
    } else if (Array.isArray(stage.input)) items = stage.input.map((text) => ({ text: filling.text(text) }));
    const input = items ? items.map(({ text }) => text) : filling.text(inputOf(stage));
    const ask = askVectors(route, input, stage.parameters);
    return items ? { ...ask, items } : ask;
  },
  read(_stage, body, { items }) {
    const vectors = readVectors(body, items?.length ?? 1)?.vectors;
    if (!vectors) return undefined;
    return items ? { text: '', vectors, items } : { text: '', vectors };
  },
};

/** The request for vectors of texts. */
export function askVectors(
  route: string,
  input: string | readonly string[],
  more: Readonly<Record<string, unknown>>,
): { target: string; body: Buffer } {
  return {
    target: '/v1/embeddings',
    body: Buffer.from(JSON.stringify({ ...more, model: route, input })),
  };
}

/** Vectors in the order of their inputs, and the model that made them; undefined where there are not `count` of one length. */
export function readVectors(
  body: Buffer,
  count: number,
): { vectors: number[][]; model: string | undefined } | undefined {
  const answer = parsedObject(body);
  const data = answer?.['data'];
  if (!Array.isArray(data) || data.length !== count) return undefined;
  const vectors: (number[] | undefined)[] = new Array(count).fill(undefined);
  for (const [place, entry] of data.entries()) {
    if (!isObject(entry)) return undefined;
    const { index = place, embedding } = entry;
    if (!Number.isInteger(index) || !isVector(embedding)) return undefined;
    if (!((index as number) >= 0 && (index as number) < count) || vectors[index as number]) return undefined;
    vectors[index as number] = embedding;
  }
  const all = vectors as number[][]; // as many places as there are, each taken once
  if (all.some(({ length }) => length !== all[0]!.length)) return undefined;
  const model = answer!['model'];
  return { vectors: all, model: typeof model === 'string' ? model : undefined };
}

export function isVector(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= DIMENSIONS_MAX &&
    value.every((number) => typeof number === 'number' && Number.isFinite(number))
  );
}
