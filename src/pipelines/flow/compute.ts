import type { StageSettings, StageValue } from '../kinds/contracts.ts';
import { listValue, mergedByRank, mergedByScore, rankedByNearness } from './lists.ts';

/**
 * What a stage gives that asks nobody: the first text of several stages, or one list of theirs. `of` gives the value of a stage
 * that has ended. Undefined where there is nothing to give: no stage has a text, or vectors cannot be compared.
 */
export function compute(
  { first, merge, rank }: StageSettings,
  of: (stage: string) => StageValue | undefined,
): StageValue | undefined {
  if (first) {
    const chosen = chooseFirst(first, of);
    return chosen === undefined ? undefined : of(chosen);
  }
  if (merge) {
    const lists = merge.of.map((name) => of(name)?.items ?? []);
    const items = merge.by === 'rank' ? mergedByRank(lists, merge.k) : mergedByScore(lists);
    return listValue(items.slice(0, merge.top));
  }
  const query = rank && of(rank.query);
  const among = rank && of(rank.of);
  const ranked = query && among && rankedByNearness(query, among);
  return ranked && listValue(ranked.slice(0, rank!.top));
}

/** The first of the stages that has a text; undefined where none has. */
export function chooseFirst(
  stages: readonly string[],
  of: (stage: string) => StageValue | undefined,
): string | undefined {
  return stages.find((name) => (of(name)?.text ?? '') !== '');
}
