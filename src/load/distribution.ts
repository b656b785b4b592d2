import type { Random } from '../kernel/random.ts';

/** Where lengths of prompts and answers come from. */
export interface Distribution {
  /** A whole number of 1 or more. */
  draw(random: Random): number;
}

/** The largest length that can be asked for. */
const TOKENS_MAX = 10_000_000;

const Z95 = 1.6448536269514722; // the 95th percentile of the standard normal distribution

/**
 * Reads `128` (always), `50-200` (evenly between) or `lognormal:MEAN/P95`. The result is a message where it cannot be read.
 */
export function parseDistribution(text: string): Distribution | string {
  const fixed = /^(\d+)$/.exec(text);
  if (fixed) return between(Number(fixed[1]), Number(fixed[1]));
  const even = /^(\d+)-(\d+)$/.exec(text);
  if (even) return between(Number(even[1]), Number(even[2]));
  const lognormal = /^lognormal:(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text);
  if (lognormal) return lognormalOf(Number(lognormal[1]), Number(lognormal[2]));
  return `expected N, A-B or lognormal:MEAN/P95, got '${text}'`;
}

function between(low: number, high: number): Distribution | string {
  if (low < 1 || high < low || high > TOKENS_MAX) {
    return `expected lengths of 1 to ${TOKENS_MAX}, the smaller one first, got ${low}-${high}`;
  }
  return { draw: (random) => low + Math.floor(random.next() * (high - low + 1)) };
}

/**
 * Formula: with ln X normal(m, s), the mean is exp(m + s²/2) and the 95th percentile exp(m + z s), z = 1.645; so
 * ln(P95/MEAN) = z s - s²/2, whose smaller root is s. It has one only up to P95 = exp(z²/2) MEAN, which is 3.86 MEAN.
 */
function lognormalOf(mean: number, p95: number): Distribution | string {
  const root = Z95 * Z95 - 2 * Math.log(p95 / mean);
  if (!(mean >= 1) || p95 < mean || root < 0 || p95 > TOKENS_MAX) {
    return `expected a mean of 1 or more and a 95th percentile of 1 to 3.86 times the mean, got ${mean}/${p95}`;
  }
  const sigma = Z95 - Math.sqrt(root);
  const mu = Math.log(mean) - (sigma * sigma) / 2;
  return {
    draw(random) {
      const drawn = Math.round(Math.exp(mu + sigma * normal(random)));
      return Math.min(TOKENS_MAX, Math.max(1, drawn));
    },
  };
}

/** Formula: Box and Muller, 1958; the second number of the pair is left unused, so that each draw takes two. */
function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return radius * Math.cos(2 * Math.PI * random.next());
}
