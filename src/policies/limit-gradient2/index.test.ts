import { expect, it } from 'vitest';
import { answers } from '../../../test/policies/answers.ts';
import { Gradient2Limit } from './index.ts';

it('adds a part of its queue allowance where latency is as ever', () => {
  const limit = new Gradient2Limit();
  answers(limit, { count: 11, everyMs: 100, inFlight: 20 });
  expect(limit.limit).toBeCloseTo(20.8, 6);
});

it('shrinks where latency is far above that of a long while, not to less than half of the step', () => {
  const limit = new Gradient2Limit();
  answers(limit, { count: 110, everyMs: 100, inFlight: 40 });
  const before = limit.limit;
  answers(limit, { count: 11, everyMs: 100, inFlight: 40, ratio: 4, fromMs: 20_000 });
  // By then the long mean has hardly moved, and the gradient is at its lower bound.
  expect(limit.limit).toBeCloseTo(before * 0.8 + 0.2 * (before * 0.5 + 4), 6);
});

it('holds where less than half is used, gives way to refusals, starts again from a few', () => {
  const limit = new Gradient2Limit();
  answers(limit, { count: 50, everyMs: 100, inFlight: 5 });
  expect(limit.limit).toBe(20);
  limit.dropped();
  expect(limit.limit).toBe(18);
  limit.restart(4);
  expect(limit.limit).toBe(4);
});
