/** No value of a bucket is further than this share from any that was counted in it. */
const ERROR_MAX = 0.02;
const GAMMA = (1 + ERROR_MAX) / (1 - ERROR_MAX);
const LOG_GAMMA = Math.log(GAMMA);

/** From a millisecond to ten minutes; what is beyond counts as the nearest. */
const TIME_MIN_MS = 1;
const TIME_MAX_MS = 600_000;
/** Prices of a request, in any currency, and its tokens. */
const COST_MIN = 1e-9;
const COST_MAX = 1e9;

/**
 * The bucket of a time in milliseconds, 0 to 333: counts of buckets add up over workers without loss, and quantiles of the
 * sum are right to 2 %. Formula: DDSketch (Masson, Rim, Lee, 2019): ceil(log_γ ms), γ = (1 + 0.02) / (1 - 0.02).
 */
export function timeBucket(ms: number): number {
  return bucketOf(ms, TIME_MIN_MS, TIME_MAX_MS);
}

/** The bucket of what a request cost, whatever the unit: the same buckets, below 0 for less than 1. */
export function costBucket(cost: number): number {
  return bucketOf(cost, COST_MIN, COST_MAX);
}

/** The largest value that is counted in a bucket: all of those up to it, and none beyond, are at or below this value. */
export function bucketTop(bucket: number): number {
  return GAMMA ** bucket;
}

function bucketOf(value: number, min: number, max: number): number {
  const held = value > min ? Math.min(value, max) : min; // what is no number counts as the least
  const bucket = Math.ceil(Math.log(held) / LOG_GAMMA - 1e-9);
  return bucket === 0 ? 0 : bucket; // no -0
}
