import { seededRandom } from '../src/kernel/random.ts';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export interface Interval {
  median: number;
  low: number;
  high: number;
}

const RESAMPLES = 2000;

/** The median and its 95 % interval. Formula: percentile bootstrap (Efron, 1979), 2000 resamples, seeded. */
export function bootstrapMedian(values: readonly number[], seed = 1): Interval {
  const random = seededRandom(seed);
  const medians = Array.from({ length: RESAMPLES }, () =>
    median(values.map(() => values[Math.floor(random.next() * values.length)]!)),
  ).sort((a, b) => a - b);
  return {
    median: median(values),
    low: medians[Math.floor(RESAMPLES * 0.025)]!,
    high: medians[Math.ceil(RESAMPLES * 0.975) - 1]!,
  };
}
