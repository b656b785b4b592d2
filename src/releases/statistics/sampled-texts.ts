import type { Random } from '../../kernel/random.ts';

/**
 * Whether two backends draw from the same distribution of answers, by samples of each for every prompt: maximum mean
 * discrepancy with the Hamming kernel, its null by permutations within each prompt (arXiv 2410.20247). A sample is a list of
 * tokens; shorter ones are compared as if padded by a token that stands for nothing else.
 */

export interface SamplesOfPrompt {
  a: readonly (readonly string[])[];
  b: readonly (readonly string[])[];
}

/** The share of positions at which two samples have the same token, over the longer one; 1 where both are empty. */
export function hammingKernel(one: readonly string[], other: readonly string[]): number {
  const length = Math.max(one.length, other.length);
  if (length === 0) return 1;
  let same = 0;
  for (let i = 0; i < Math.min(one.length, other.length); i++) if (one[i] === other[i]) same++;
  return same / length;
}

/**
 * The unbiased estimate of MMD², the mean over prompts, and the probability of one as large or larger were both alike:
 * (1 + permutations with as much) / (1 + permutations). Prompts with fewer than two samples of either are passed over;
 * undefined where none is left.
 */
export function mmdTest(
  prompts: readonly SamplesOfPrompt[],
  random: Random,
  permutations = 500,
): { mmd2: number; p: number } | undefined {
  const kernels = prompts
    .filter(({ a, b }) => a.length >= 2 && b.length >= 2)
    .map(({ a, b }) => {
      const all = [...a, ...b];
      return { first: a.length, k: all.map((one) => all.map((other) => hammingKernel(one, other))) };
    });
  if (kernels.length === 0) return undefined;
  const statistic = (order: (size: number) => number[]) =>
    kernels.reduce((sum, { first, k }) => sum + mmd2(k, first, order(k.length)), 0) / kernels.length;
  const straight = (size: number) => Array.from({ length: size }, (_, i) => i);
  const seen = statistic(straight);
  let asMuch = 0;
  for (let i = 0; i < permutations; i++) {
    // Equal sums come out a little different in another order.
    if (statistic((size) => shuffled(straight(size), random)) >= seen - 1e-12) asMuch++;
  }
  return { mmd2: seen, p: (1 + asMuch) / (1 + permutations) };
}

/** Of one prompt: the first `first` of `order` are one side's samples, the rest the other's. */
function mmd2(k: readonly (readonly number[])[], first: number, order: readonly number[]): number {
  const second = order.length - first;
  let [within, beyond, between] = [0, 0, 0];
  for (let i = 0; i < order.length; i++) {
    for (let j = 0; j < order.length; j++) {
      if (i === j) continue;
      const value = k[order[i]!]![order[j]!]!;
      if (i < first && j < first) within += value;
      else if (i >= first && j >= first) beyond += value;
      else between += value;
    }
  }
  return within / (first * (first - 1)) + beyond / (second * (second - 1)) - between / (first * second);
}

/** In place, by Fisher and Yates. */
export function shuffled<Item>(items: Item[], random: Random): Item[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}
