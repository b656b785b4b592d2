/** Whether probabilities mean what they say. `right[i]` is 1 where what was predicted with probability `p[i]` came true. */

/** Expected calibration error: bins of equal width, each its gap between mean probability and frequency, weighted by its rows. */
export function expectedCalibrationError(
  p: readonly number[],
  right: readonly number[],
  bins: number,
): number {
  const sums = Array.from({ length: bins }, () => 0);
  p.forEach((probability, i) => {
    const bin = Math.min(bins - 1, Math.floor(probability * bins + 1e-9)); // the last one takes 1 as well
    sums[bin]! += probability - right[i]!;
  });
  return sums.reduce((error, sum) => error + Math.abs(sum), 0) / p.length;
}

/** The mean squared difference of probability and outcome (Brier 1950). */
export function brier(p: readonly number[], right: readonly number[]): number {
  return p.reduce((sum, probability, i) => sum + (probability - right[i]!) ** 2, 0) / p.length;
}

/** A score to a probability, never falling: straight between the points, level beyond them. */
export interface Calibration {
  /** Ascending. */
  scores: number[];
  probabilities: number[];
}

/** The most points of a calibration; neighbours are joined beyond it. */
const POINTS_MAX = 200;

/**
 * The never-falling step function that lies nearest to the outcomes in squares, by pooling adjacent violators (Ayer et al.
 * 1955), as the middle of each pool.
 */
export function isotonic(scores: readonly number[], right: readonly number[]): Calibration {
  const order = scores.map((_, i) => i).sort((a, b) => scores[a]! - scores[b]!);
  const rowsMin = Math.ceil(scores.length / POINTS_MAX);
  const pools: { score: number; right: number; rows: number }[] = [];
  for (const i of order) {
    const last = pools.at(-1);
    const same = last && (last.rows < rowsMin || last.score / last.rows === scores[i]);
    if (last && same) {
      last.score += scores[i]!;
      last.right += right[i]!;
      last.rows++;
    } else pools.push({ score: scores[i]!, right: right[i]!, rows: 1 });
  }
  const rising: typeof pools = [];
  for (const pool of pools) {
    rising.push(pool);
    for (let last = rising.at(-2); last && falls(last, rising.at(-1)!); last = rising.at(-2)) {
      const { score, right, rows } = rising.pop()!;
      last.score += score;
      last.right += right;
      last.rows += rows;
    }
  }
  return {
    scores: rising.map(({ score, rows }) => score / rows),
    probabilities: rising.map(({ right, rows }) => right / rows),
  };
}

interface Pool {
  right: number;
  rows: number;
}

const falls = (before: Pool, after: Pool) => before.right / before.rows >= after.right / after.rows;

/** The probability that a score stands for. */
export function calibrated({ scores, probabilities }: Calibration, score: number): number {
  const above = scores.findIndex((each) => each >= score);
  if (above < 0) return probabilities.at(-1) ?? score;
  if (above === 0 || scores[above] === score) return probabilities[above]!;
  const [low, high] = [scores[above - 1]!, scores[above]!];
  const share = (score - low) / (high - low);
  return probabilities[above - 1]! + share * (probabilities[above]! - probabilities[above - 1]!);
}
