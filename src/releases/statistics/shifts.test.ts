import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jensenShannon, psi, psiCritical, wasserstein } from './shifts.ts';
import { kolmogorovSmirnov, mannWhitney } from './two-samples.ts';

const TEN = Array.from({ length: 10 }, () => 0.1);
const CURRENT = [0.08, 0.09, 0.095, 0.1, 0.1, 0.1, 0.105, 0.105, 0.11, 0.115];
const X = [12.1, 14.3, 11.8, 15.2, 13.9, 18.4, 12.7, 16.0];
const Y = [11.2, 12.0, 10.9, 13.1, 12.4, 11.7, 12.9, 11.5];
const values = fc.array(fc.double({ min: -100, max: 100, noNaN: true }), { minLength: 1, maxLength: 30 });

describe('distances of shares', () => {
  it('gives the vectors of the population stability index and of Jensen and Shannon', () => {
    expect(psi(TEN, CURRENT)).toBeCloseTo(0.0093103752, 10);
    expect(jensenShannon(TEN, CURRENT)).toBeCloseTo(0.0340927234, 10);
    expect(jensenShannon(TEN, CURRENT, 2)).toBeCloseTo(0.0409495341, 10);
  });

  it('gives critical values of the index by the rows on both sides', () => {
    expect(psiCritical(10, 0.05, 100, 100)).toBeCloseTo(0.33838, 6);
    expect(psiCritical(10, 0.05, 1000, 100)).toBeCloseTo(0.186109, 6);
    expect(psiCritical(10, 0.05, 1000, 1000)).toBeCloseTo(0.033838, 6);
  });

  it('is finite where a share is nothing', () => {
    expect(psi([1, 0], [0, 1])).toBeGreaterThan(10);
    expect(psi([1, 0], [0, 1])).toBeLessThan(50);
    expect(jensenShannon([1, 0], [0, 1], 2)).toBeCloseTo(1, 12);
  });
});

describe('two samples', () => {
  it('gives the vectors of Mann and Whitney, Kolmogorov and Smirnov, and Wasserstein', () => {
    const ranks = mannWhitney(X, Y);
    expect(ranks.u).toBe(55);
    expect(ranks.exactGreater).toBeCloseTo(0.0073815074, 10);
    expect(ranks.asymptotic).toBeCloseTo(0.0181290079, 9);
    expect(kolmogorovSmirnov(X, Y).distance).toBeCloseTo(0.625, 12);
    expect(kolmogorovSmirnov(X, Y).p).toBeCloseTo(0.087024087, 9);
    expect(wasserstein(X, Y)).toBeCloseTo(2.3375, 10);
  });

  it('finds nothing between a sample and itself, and the shift between it and itself moved', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 50 }), (sample, shift) => {
        const moved = sample.map((value) => value + shift);
        expect(wasserstein(sample, sample)).toBe(0);
        expect(wasserstein(sample, moved)).toBeCloseTo(shift, 6);
        expect(kolmogorovSmirnov(sample, sample)).toEqual({ distance: 0, p: 1 });
        expect(mannWhitney(moved, sample).superiority).toBeGreaterThanOrEqual(0.5);
      }),
    );
  });

  it('counts each pair once, and half of those that are equal', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5), { minLength: 1 }), fc.array(fc.nat(5), { minLength: 1 }), (x, y) => {
        const pairs = x.flatMap((a) => y.map((b) => (a > b ? 1 : a === b ? 0.5 : 0)));
        expect(mannWhitney(x, y).u).toBeCloseTo(
          pairs.reduce<number>((sum, each) => sum + each, 0),
          6,
        );
      }),
    );
  });

  it('says that nothing is known of an empty sample', () => {
    expect(kolmogorovSmirnov([], [1]).p).toBeNaN();
    expect(mannWhitney([], [1]).superiority).toBeNaN();
    expect(mannWhitney([], [1]).asymptotic).toBeNaN();
    expect(mannWhitney([2, 2, 2], [2, 2])).toMatchObject({ superiority: 0.5, asymptotic: 1 });
  });
});
