import { logMean } from './log-mean.ts';

/** Rates as parts of the bound: how good, or how bad, it may turn out to be. */
const BETTER = [1e-6, 0.1, 0.25, 0.5, 0.75] as const;
const WORSE = [1.25, 1.5, 2, 4, 8] as const;

/**
 * The logarithm of the evidence that marked sessions are less than `bound` of all (0 to 1), however often it is looked at.
 * Formula: mean over rates q below the bound δ of (q/δ)^x ((1-q)/(1-δ))^(n-x), an e-value where the rate is δ or more
 * (Waudby-Smith and Ramdas, arXiv 2010.09686); believed at 1/α.
 */
export function rateBelow(bound: number, marked: number, all: number): number {
  return logMean(BETTER.map((part) => likelihood(part * bound, bound, marked, all)));
}

/** The mirror: the evidence that marked sessions are more than `bound` of all. */
export function rateAbove(bound: number, marked: number, all: number): number {
  const rates = WORSE.map((part) => part * bound).filter((rate) => rate < 1);
  // Where hardly a rate is left between the bound and 1, the middle between them stands for all.
  if (rates.length === 0) rates.push((1 + bound) / 2);
  return logMean(rates.map((rate) => likelihood(rate, bound, marked, all)));
}

function likelihood(rate: number, bound: number, marked: number, all: number): number {
  return marked * Math.log(rate / bound) + (all - marked) * Math.log((1 - rate) / (1 - bound));
}
