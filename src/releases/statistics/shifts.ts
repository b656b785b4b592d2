import chisquareQuantile from '@stdlib/stats-base-dists-chisquare-quantile';

/** How far two distributions lie from each other. Shares are lists of equal length that sum to 1. */

/** A share of nothing is taken for this: the logarithm of a ratio to it would be infinite. */
const SHARE_MIN = 1e-6;

/** Population stability index: the sum of (current - reference) ln(current / reference) over bins. In nats. */
export function psi(reference: readonly number[], current: readonly number[]): number {
  let sum = 0;
  for (let bin = 0; bin < reference.length; bin++) {
    const was = Math.max(reference[bin]!, SHARE_MIN);
    const is = Math.max(current[bin]!, SHARE_MIN);
    sum += (is - was) * Math.log(is / was);
  }
  return sum;
}

/**
 * What the index of so many bins stays under with probability 1 - alpha while nothing differs, for a reference and a window
 * of so many rows: the quantile of chi-square with bins - 1 degrees, times 1/N + 1/M (Yurdakul, The Population Stability
 * Index, 2018). One look; not for a stream. 0 for fewer than two bins.
 */
export function psiCritical(bins: number, alpha: number, referenceRows: number, currentRows: number): number {
  if (bins < 2) return 0;
  return chisquareQuantile(1 - alpha, bins - 1) * (1 / referenceRows + 1 / currentRows);
}

/** The square root of the Jensen-Shannon divergence (Lin 1991), in nats or in the base given. */
export function jensenShannon(p: readonly number[], q: readonly number[], base = Math.E): number {
  let divergence = 0;
  for (let bin = 0; bin < p.length; bin++) {
    const middle = (p[bin]! + q[bin]!) / 2;
    divergence += (relative(p[bin]!, middle) + relative(q[bin]!, middle)) / 2;
  }
  return Math.sqrt(Math.max(0, divergence) / Math.log(base));
}

const relative = (share: number, to: number) => (share > 0 ? share * Math.log(share / to) : 0);

/** The mean distance that probability has to be moved, in the unit of the values: the area between the two distribution functions. */
export function wasserstein(x: ArrayLike<number>, y: ArrayLike<number>): number {
  let area = 0;
  let last = 0;
  let gap = 0; // between the two functions from the last step on
  overSteps(sorted(x), sorted(y), (value, below, belowOther) => {
    if (gap > 0) area += gap * (value - last);
    last = value;
    gap = Math.abs(below - belowOther);
  });
  return area;
}

export function sorted(values: ArrayLike<number>): Float64Array {
  return Float64Array.from(values).sort();
}

/** Goes up through the values of two sorted lists, each value once; `step` gets the share of each list at or below it. */
export function overSteps(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  step: (value: number, atOrBelowX: number, atOrBelowY: number) => void,
): void {
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    const value = Math.min(x[i] ?? Number.POSITIVE_INFINITY, y[j] ?? Number.POSITIVE_INFINITY);
    while (i < x.length && x[i] === value) i++;
    while (j < y.length && y[j] === value) j++;
    step(value, i / x.length, j / y.length);
  }
}
