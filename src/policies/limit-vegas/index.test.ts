import { expect, it } from 'vitest';
import { answers } from '../../../test/policies/answers.ts';
import { VegasLimit } from './index.ts';

const after = (ratio: number, more: object = {}) => {
  const limit = new VegasLimit();
  answers(limit, { count: 13, everyMs: 100, inFlight: 20, ratio, ...more });
  return limit.limit;
};

it('grows, creeps, stays and shrinks as the queue that it reckons grows', () => {
  // k is 1 at 20; queues of 1, 2, 5 and 10.
  expect(after(1)).toBe(26);
  expect(after(20 / 18)).toBe(21);
  expect(after(20 / 15)).toBe(20);
  expect(after(2)).toBe(19);
});

it('holds where less than half is used, and gives way where one is late', () => {
  expect(after(1, { inFlight: 9 })).toBe(20);
  expect(after(1, { share: 1.1 })).toBe(19);
});

it('gives way to refusals, and goes back to a few where the endpoint was gone', () => {
  const limit = new VegasLimit();
  limit.dropped();
  expect(limit.limit).toBe(19);
  limit.restart(4);
  expect(limit.limit).toBe(4);
});
