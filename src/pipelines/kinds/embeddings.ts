import { isObject, parsedObject } from '../../protocols/json-object.ts';
import type { ClassCentres, StageItem, StageKind, StageValue } from './contracts.ts';
import { cosine } from './cosine.ts';
import { itemsOf } from './items.ts';
import { inputOf } from './text.ts';

/** Numbers of one vector at most. */
const DIMENSIONS_MAX = 65_536;

/** Vectors of texts; where the stage has classes with examples, the class whose centre is the nearest. */
export const embeddings: StageKind = {
  name: 'embeddings',
  streams: false,
  ask(stage, route, filling, _stream, extras) {
    let items: StageItem[] | undefined;
    if (stage.inputs !== undefined) {
      items = itemsOf(filling, stage.inputs, 'inputs');
      if (items.length === 0) return { value: { text: '', vectors: [], items: [] } };
    } else if (Array.isArray(stage.input)) items = stage.input.map((text) => ({ text: filling.text(text) }));
    const input = items ? items.map(({ text }) => text) : filling.text(inputOf(stage));
    // What a caller wishes of vectors would make them others than those of the examples.
    const ask = askVectors(route, input, { ...(stage.classes ? {} : extras), ...stage.parameters });
    return items ? { ...ask, items } : ask;
  },
  read({ classes }, body, ask) {
    const { items } = ask;
    const read = readVectors(body, items?.length ?? 1);
    if (!read) return undefined;
    const { vectors, model } = read;
    if (classes) return ask.classes && nearest(vectors[0]!, model, ask.classes);
    return items ? { text: '', vectors, items } : { text: '', vectors };
  },
};

/** The class whose centre is nearest by cosine, which is the score; undefined where the vectors are not of one model. */
function nearest(
  vector: readonly number[],
  model: string | undefined,
  { centres, model: theirs }: ClassCentres,
): StageValue | undefined {
  if (model !== theirs) return undefined;
  let best: { name: string; score: number } | undefined;
  for (const { name, vector: centre } of centres) {
    if (centre.length !== vector.length) return undefined;
    const score = cosine(vector, centre);
    if (!best || score > best.score) best = { name, score };
  }
  return best && { text: best.name, class: best.name, score: best.score, vectors: [vector] };
}

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
    const { index = place } = entry;
    const vector = typeof entry['embedding'] === 'string' ? decoded(entry['embedding']) : entry['embedding'];
    if (!Number.isInteger(index) || !isVector(vector)) return undefined;
    if (!((index as number) >= 0 && (index as number) < count) || vectors[index as number]) return undefined;
    vectors[index as number] = vector;
  }
  const all = vectors as number[][]; // as many places as there are, each taken once
  if (all.some(({ length }) => length !== all[0]!.length)) return undefined;
  const model = answer!['model'];
  return { vectors: all, model: typeof model === 'string' ? model : undefined };
}

/** `encoding_format: base64`: numbers of 32 bits, little-endian. */
function decoded(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64');
  const numbers: number[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4) numbers.push(bytes.readFloatLE(at));
  return numbers;
}

export function isVector(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= DIMENSIONS_MAX &&
    value.every((number) => typeof number === 'number' && Number.isFinite(number))
  );
}
