import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { retryTiming } from './index.ts';

const random = seededRandom(1);

describe('the time of a retry', () => {
  it('is now where another endpoint is left', () => {
    const input = { another: true, attempts: 1, leftMs: 500, usualMs: 100 };
    expect(retryTiming.decide(input, 0, random)).toEqual({
      choice: 0,
      reason: { code: 'retry-at-once', figures: { pauseMs: 0, leftMs: 500, usualMs: 100 } },
    });
  });

  it('never comes where the usual time is not left', () => {
    const input = { another: true, attempts: 1, leftMs: 99, usualMs: 100 };
    expect(retryTiming.decide(input, 0, random)).toEqual({
      choice: undefined,
      reason: { code: 'retry-too-late', figures: { pauseMs: 0, leftMs: 99, usualMs: 100 } },
    });
  });

  it('has pauses that are spread, that grow, and that end at a second', () => {
    for (const [attempts, most] of [
      [1, 50],
      [2, 100],
      [3, 200],
      [9, 1000],
    ] as const) {
      const input = { another: false, attempts, leftMs: 60_000, usualMs: undefined };
      const pauses = Array.from({ length: 500 }, () => retryTiming.decide(input, 0, random).choice!);
      expect(Math.max(...pauses)).toBeLessThanOrEqual(most);
      expect(Math.max(...pauses)).toBeGreaterThan(most * 0.9);
      expect(Math.min(...pauses)).toBeLessThan(most * 0.1);
    }
  });

  it('never promises more than is left', () => {
    const input = fc.record({
      another: fc.boolean(),
      attempts: fc.integer({ min: 0, max: 20 }),
      leftMs: fc.double({ min: -100, max: 5_000, noNaN: true }),
      usualMs: fc.option(fc.double({ min: 0, max: 5_000, noNaN: true }), { nil: undefined }),
    });
    fc.assert(
      fc.property(input, fc.nat(), (given, seed) => {
        const { choice } = retryTiming.decide(given, 0, seededRandom(seed));
        if (choice !== undefined) expect(choice + (given.usualMs ?? 0)).toBeLessThan(given.leftMs);
        else if (given.another) expect(given.usualMs ?? 0).toBeGreaterThanOrEqual(given.leftMs);
      }),
    );
  });
});
