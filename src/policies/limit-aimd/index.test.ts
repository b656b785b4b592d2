import { expect, it } from 'vitest';
import { answers } from '../../../test/policies/answers.ts';
import { AimdLimit } from './index.ts';

it('adds one request a window while all is well and the limit is used', () => {
  const limit = new AimdLimit();
  answers(limit, { count: 50, everyMs: 100, inFlight: 20 });
  expect(limit.limit).toBeGreaterThanOrEqual(23);
  expect(limit.limit).toBeLessThanOrEqual(25);
});

it('adds nothing while less than half of it is used', () => {
  const limit = new AimdLimit();
  answers(limit, { count: 50, everyMs: 100, inFlight: 5 });
  expect(limit.limit).toBe(20);
});

it('takes a tenth where one is late or refused, and never goes below one', () => {
  const limit = new AimdLimit();
  answers(limit, { count: 13, everyMs: 100, inFlight: 20, share: 1.2 });
  expect(limit.limit).toBeCloseTo(18, 6);
  limit.dropped();
  expect(limit.limit).toBeCloseTo(16.2, 6);
  answers(limit, { count: 5000, everyMs: 100, inFlight: 20, share: 1.2, fromMs: 10_000 });
  expect(limit.limit).toBe(1);
});

it('counts in units, and goes back to a few where the endpoint was gone', () => {
  const limit = new AimdLimit();
  answers(limit, { count: 1, everyMs: 1, inFlight: 3000, unit: 300 });
  expect(limit.limit).toBe(6000);
  limit.restart(1200);
  expect(limit.limit).toBe(1200);
});
