import { parsedObject } from '../../../protocols/json-object.ts';
import { readVectors } from './answers.ts';
import type { Question } from './asking.ts';

/** Asks for the vectors of both texts. The difference is 1 less their cosine: 0 for one direction, 1 for none in common. */
export function byEmbedding(route: string, caller: string, copy: string): Question {
  return {
    target: '/v1/embeddings',
    body: { model: route, input: [caller, copy] },
    read(answer) {
      const read = readVectors(parsedObject(answer));
      if (read?.kind !== 'vectors' || read.vectors.length !== 2) return undefined;
      const [a, b] = read.vectors as [number[], number[]];
      const cosine = dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
      return a.length === b.length && Number.isFinite(cosine)
        ? Math.min(1, Math.max(0, 1 - cosine))
        : undefined;
    },
  };
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * (b[at] ?? Number.NaN);
  return sum;
}
