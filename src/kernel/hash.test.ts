import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hash32, rendezvousScore } from './hash.ts';

describe('hash32', () => {
  it('is the same everywhere, for a worker must agree with the next one', () => {
    expect([hash32(''), hash32('a'), hash32('session-1')]).toEqual([2_872_998_923, 444_641_715, 599_268_235]);
  });

  it('spreads what is alike', () => {
    const buckets = new Array(16).fill(0);
    for (let i = 0; i < 16_000; i++) buckets[hash32(`s${i}`) % 16]++;
    for (const count of buckets) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });
});

describe('rendezvousScore', () => {
  it('is a number above 0 that grows with the weight', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.string(),
        fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
        (key, name, weight) => {
          const score = rendezvousScore(key, name, weight);
          expect(score).toBeGreaterThan(0);
          expect(Number.isFinite(score)).toBe(true);
          expect(rendezvousScore(key, name, weight * 2)).toBeGreaterThan(score);
        },
      ),
    );
  });
});
