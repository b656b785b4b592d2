import betaQuantile from '@stdlib/stats-base-dists-beta-quantile';
import binomialCdf from '@stdlib/stats-base-dists-binomial-cdf';

/**
 * McNemar's test, exact and one-sided: the probability that of all answers that one side alone has right so few, or fewer,
 * would be the second's, were both as good. `lost`: the first has it right and the second wrong; `won`: the other way round.
 * Formula: P(Binomial(lost + won, 1/2) >= lost).
 */
export function mcnemar(lost: number, won: number): number {
  if (lost === 0) return 1;
  return binomialCdf(won, lost + won, 0.5);
}

/**
 * The upper bound of a rate after `count` in `of`, by Clopper and Pearson (Biometrika 26, 1934): the quantile of
 * Beta(count + 1, of - count). 1 where nothing has been seen.
 */
export function rateAtMost(count: number, of: number, confidence = 0.95): number {
  if (of <= 0 || count >= of) return 1;
  return betaQuantile(confidence, count + 1, of - count);
}

/**
 * How likely a token is the first that differs, given that none before it did: `mismatches` in `exposed` tokens that were
 * compared, the mismatched ones included. Comparable between answers of any length, as nothing counts beyond the first
 * mismatch. Where none was seen the 95 % bound is 3 / exposed (the rule of three; Hanley and Lippman-Hand, JAMA 249, 1983).
 */
export function hazard(mismatches: number, exposed: number): { rate: number; atMost: number } | undefined {
  if (exposed <= 0) return undefined;
  const atMost = mismatches === 0 ? Math.min(1, 3 / exposed) : rateAtMost(mismatches, exposed);
  return { rate: mismatches / exposed, atMost };
}
