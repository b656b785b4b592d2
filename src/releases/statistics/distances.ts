/**
 * Distances between two distributions over the same outcomes, each a list of probabilities that add up to 1 or less. What is
 * missing to 1 is one outcome more: engines tell only the likeliest tokens.
 */

/** Kullback-Leibler divergence KL(p || q) in nats; infinite where q rules out what p allows. */
export function divergence(p: readonly number[], q: readonly number[]): number {
  const [a, b] = [completed(p), completed(q)];
  return a.reduce((sum, each, i) => sum + (each === 0 ? 0 : each * Math.log(each / b[i]!)), 0);
}

/** Total variation: the most by which any set of outcomes differs, 0 to 1. */
export function variation(p: readonly number[], q: readonly number[]): number {
  const [a, b] = [completed(p), completed(q)];
  return a.reduce((sum, each, i) => sum + Math.abs(each - b[i]!), 0) / 2;
}

/** Rounding may take sums a little beyond 1. */
function completed(probabilities: readonly number[]): number[] {
  const sum = probabilities.reduce((total, each) => total + each, 0);
  return sum < 1 - 1e-9 ? [...probabilities, 1 - sum] : [...probabilities];
}
