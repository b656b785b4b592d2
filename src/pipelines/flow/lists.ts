import type { StageItem, StageValue } from '../kinds/contracts.ts';
import { cosine } from '../kinds/cosine.ts';

/** Lists of several stages made one, and put in order. All of it is bounded by the lists it is given. */

/**
 * Reciprocal rank fusion (Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
 * Methods, SIGIR 2009): the score of an item is the sum of 1 / (k + its place), from 1, over all the lists it is in. A list whose
 * items all have scores is in the order of these, whatever order it came in.
 */
export function mergedByRank(lists: readonly (readonly StageItem[])[], k: number): StageItem[] {
  const merged = new Map<string, StageItem & { score: number }>();
  for (const list of lists) {
    const seen = new Set<string>();
    let place = 0;
    const isScored = list.every(({ score }) => score !== undefined);
    for (const item of isScored ? bestFirst([...list]) : list) {
      const key = keyOf(item);
      if (seen.has(key)) continue; // of one list an item has the best place
      seen.add(key);
      place++;
      const known = merged.get(key);
      if (known) known.score += 1 / (k + place);
      else merged.set(key, { ...item, score: 1 / (k + place) });
    }
  }
  return bestFirst([...merged.values()]);
}

/** Each item once, with the greatest of its scores; those without any come last. */
export function mergedByScore(lists: readonly (readonly StageItem[])[]): StageItem[] {
  const merged = new Map<string, StageItem>();
  for (const item of lists.flat()) {
    const key = keyOf(item);
    const known = merged.get(key);
    if (!known) merged.set(key, { ...item });
    else if (scoreOf(item) > scoreOf(known)) merged.set(key, { ...known, score: item.score! });
  }
  return bestFirst([...merged.values()]);
}

/**
 * The items by the cosine of their vectors and the query's, the nearest first; undefined where the vectors are not of one model:
 * of several lengths, or not as many as there are items.
 */
export function rankedByNearness(query: StageValue, of: StageValue): StageItem[] | undefined {
  const wanted = query.vectors?.[0];
  const { items = [], vectors = [] } = of;
  if (items.length !== vectors.length) return undefined;
  if (items.length === 0) return [];
  if (!wanted || vectors.some(({ length }) => length !== wanted.length)) return undefined;
  return bestFirst(items.map((item, i) => ({ ...item, score: cosine(wanted, vectors[i]!) })));
}

/** A list as what a stage has found: its text is that of the items, a line each. */
export function listValue(items: readonly StageItem[]): StageValue {
  const value: StageValue = { text: items.map(({ text }) => text).join('\n'), items };
  const score = items[0]?.score;
  return score === undefined ? value : { ...value, score };
}

/** The same document in two lists: by its id where it has one, else by its text. */
function keyOf({ id, text }: StageItem): string {
  return typeof id === 'string' || typeof id === 'number' ? `id:${id}` : `text:${text}`;
}

function scoreOf({ score }: StageItem): number {
  return score ?? Number.NEGATIVE_INFINITY;
}

/** Of those that are as good, the one that came first stays first. */
function bestFirst(items: StageItem[]): StageItem[] {
  return items.sort((a, b) => {
    const [one, other] = [scoreOf(a), scoreOf(b)];
    return one === other ? 0 : other - one;
  });
}
