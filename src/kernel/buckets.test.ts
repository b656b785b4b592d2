import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bucketTop, costBucket, timeBucket } from './buckets.ts';

describe('Buckets of times and costs', () => {
  it('hold values within 2 % of one another', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 600_000, noNaN: true }), (ms) => {
        const bucket = timeBucket(ms);
        expect(ms).toBeLessThanOrEqual(bucketTop(bucket) * (1 + 1e-7));
        expect(ms).toBeGreaterThan(bucketTop(bucket - 1) * (1 - 1e-7));
        const middle = (bucketTop(bucket) * 2) / (1 + 1.02 / 0.98);
        expect(Math.abs(middle - ms) / ms).toBeLessThanOrEqual(0.02 + 1e-6);
      }),
    );
  });

  it('put the top of a bucket into that bucket', () => {
    for (let bucket = 0; bucket <= 332; bucket++) expect(timeBucket(bucketTop(bucket))).toBe(bucket);
  });

  it('count what is beyond the range as its end', () => {
    expect([timeBucket(0), timeBucket(-1), timeBucket(Number.NaN), timeBucket(0.5)]).toEqual([0, 0, 0, 0]);
    expect(timeBucket(Number.POSITIVE_INFINITY)).toBe(333);
    expect(costBucket(0)).toBe(costBucket(1e-9));
    expect(costBucket(0.0001)).toBeLessThan(costBucket(0.00011));
    expect(Object.is(costBucket(1), 0)).toBe(true);
  });
});
