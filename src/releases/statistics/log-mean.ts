/**
 * The logarithm of the weighted mean of numbers that are told by their logarithms; weights need not sum to 1. What is too
 * large for a number stays finite in its logarithm. Formula: log-sum-exp, with the largest taken out.
 */
export function logMean(logs: readonly number[], weights?: readonly number[]): number {
  let most = Number.NEGATIVE_INFINITY;
  for (const log of logs) if (log > most) most = log;
  if (most === Number.NEGATIVE_INFINITY) return most;
  let sum = 0;
  let weight = 0;
  for (let i = 0; i < logs.length; i++) {
    const own = weights ? weights[i]! : 1;
    sum += own * Math.exp(logs[i]! - most);
    weight += own;
  }
  return most + Math.log(sum / weight);
}
