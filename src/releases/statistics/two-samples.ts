import normalCdf from '@stdlib/stats-base-dists-normal-cdf';
import { overSteps, sorted } from './shifts.ts';

/** Whether two samples are of one distribution: tests that are read once. Read again and again they alarm without end. */

/** Products of sample sizes up to which the chance of a distance is counted exactly: one pass over so many cells. */
const CELLS_MAX = 8_000_000;

export interface KolmogorovSmirnov {
  /** The greatest gap between the two distribution functions, 0 to 1. */
  distance: number;
  /** Two-sided. */
  p: number;
}

/** The two-sample test of Kolmogorov and Smirnov. NaN where a sample is empty. */
export function kolmogorovSmirnov(x: ArrayLike<number>, y: ArrayLike<number>): KolmogorovSmirnov {
  const [n, m] = [x.length, y.length];
  if (n === 0 || m === 0) return { distance: Number.NaN, p: Number.NaN };
  const distance = greatestGap(x, y);
  const p = n * m <= CELLS_MAX ? exactChance(distance, n, m) : asymptoticChance(distance, n, m);
  return { distance, p: Math.min(1, Math.max(0, p)) };
}

/** The greatest gap between the two distribution functions, 0 to 1: the part of the probability that has moved one way. */
export function greatestGap(x: ArrayLike<number>, y: ArrayLike<number>): number {
  let most = 0;
  overSteps(sorted(x), sorted(y), (_, below, belowOther) => {
    most = Math.max(most, Math.abs(below - belowOther));
  });
  return most;
}

/**
 * The chance of such a distance or a greater one: one less the share of the ways through a lattice of n by m that keep
 * closer to its diagonal (Hodges, The significance probability of the Smirnov two-sample test, 1958; as R's psmirnov counts).
 */
function exactChance(distance: number, n: number, m: number): number {
  const limit = (Math.round(distance * n * m) - 0.5) / (n * m);
  const ways = new Float64Array(m + 1);
  for (let j = 0; j <= m; j++) ways[j] = j / m > limit ? 0 : 1;
  for (let i = 1; i <= n; i++) {
    const weight = i / (i + m);
    ways[0] = i / n > limit ? 0 : weight * ways[0]!;
    for (let j = 1; j <= m; j++)
      ways[j] = Math.abs(i / n - j / m) > limit ? 0 : weight * ways[j]! + ways[j - 1]!;
  }
  return 1 - ways[m]!;
}

/** Kolmogorov's limit for large samples: 2 sum (-1)^(k-1) exp(-2 k^2 z^2). */
function asymptoticChance(distance: number, n: number, m: number): number {
  const z = distance * Math.sqrt((n * m) / (n + m));
  if (z < 0.2) return 1;
  let sum = 0;
  for (let k = 1; k <= 100; k++) sum += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * k * k * z * z);
  return sum;
}

export interface MannWhitney {
  /** Pairs in which the value of x is the greater one; half of those that are equal. */
  u: number;
  /** U as a share of all pairs: the chance that a value of x is greater than one of y. */
  superiority: number;
  /** One-sided, that x is the greater; exact, for small samples without ties. */
  exactGreater: number | undefined;
  /** Two-sided, by the normal limit, corrected for ties and for continuity. */
  asymptotic: number;
}

const EXACT_PAIRS_MAX = 2500;

/** The test of Mann and Whitney (1947). NaN where a sample is empty. */
export function mannWhitney(x: ArrayLike<number>, y: ArrayLike<number>): MannWhitney {
  const [n, m] = [x.length, y.length];
  let u = 0;
  let ties = 0;
  let [belowX, belowY] = [0, 0];
  overSteps(sorted(x), sorted(y), (_, atOrBelowX, atOrBelowY) => {
    const equalX = Math.round((atOrBelowX - belowX) * n);
    const equalY = Math.round((atOrBelowY - belowY) * m);
    u += equalX * (Math.round(belowY * m) + equalY / 2);
    const equal = equalX + equalY;
    ties += equal ** 3 - equal;
    [belowX, belowY] = [atOrBelowX, atOrBelowY];
  });
  const all = n + m;
  const spread = Math.sqrt(((n * m) / 12) * (all + 1 - ties / (all * (all - 1))));
  const off = Math.max(0, Math.abs(u - (n * m) / 2) - 0.5);
  const z = off === 0 && n * m > 0 ? 0 : off / spread; // where all values are the same nothing is spread
  return {
    u,
    superiority: u / (n * m),
    exactGreater: ties === 0 && n * m <= EXACT_PAIRS_MAX ? chanceOfU(u, n, m) : undefined,
    asymptotic: Math.min(1, 2 * normalCdf(-z, 0, 1)),
  };
}

/** The chance of u or more: orders of n and m values are counted by their U, one value of x after the other. */
function chanceOfU(u: number, n: number, m: number): number {
  // Coefficients of the Gaussian binomial: the product of (1 - q^(m + i)) / (1 - q^i) for i = 1 to n.
  const counts = new Float64Array(n * m + 1);
  counts[0] = 1;
  for (let i = 1; i <= n; i++) {
    for (let at = n * m; at >= m + i; at--) counts[at]! -= counts[at - m - i]!;
    for (let at = i; at <= n * m; at++) counts[at]! += counts[at - i]!;
  }
  let atLeast = 0;
  let all = 0;
  counts.forEach((count, at) => {
    all += count;
    if (at >= u) atLeast += count;
  });
  return atLeast / all;
}
