import { seededRandom } from '../../kernel/random.ts';

/** Numbers that an embedding is told by. */
const PROJECTED = 16;
/** Longer embeddings are cut. */
const LENGTH_MAX = 8192;

/** Drawn when the first embedding comes: 128 KiB that most workers never need. */
let signs: Int8Array | undefined;

/**
 * A vector as sums of its members with signs by chance, always the same (Achlioptas, Database-friendly random projections,
 * 2003): distances between vectors stay about what they were.
 */
export function projected(vector: ArrayLike<number>): number[] {
  const length = Math.min(vector.length, LENGTH_MAX);
  signs ??= drawSigns();
  const scale = 1 / Math.sqrt(PROJECTED);
  return Array.from({ length: PROJECTED }, (_, row) => {
    let sum = 0;
    for (let i = 0; i < length; i++) sum += vector[i]! * signs![i * PROJECTED + row]!;
    return Number((sum * scale).toPrecision(6));
  });
}

function drawSigns(): Int8Array {
  const random = seededRandom(20_030);
  return Int8Array.from({ length: LENGTH_MAX * PROJECTED }, () => (random.next() < 0.5 ? -1 : 1));
}
