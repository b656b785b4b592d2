import { expect, it } from 'vitest';
import { estimateOf } from './summary.ts';

it('gives the mean and the interval that it lies in with 95 %', () => {
  // Five values with mean 3 and standard deviation 1.5811: 2.776 * 1.5811 / sqrt(5) = 1.963.
  expect(estimateOf([1, 2, 3, 4, 5])).toEqual({ mean: 3, low: 1.037, high: 4.963 });
  expect(estimateOf([7])).toEqual({ mean: 7, low: 7, high: 7 });
  expect(estimateOf([])).toBeUndefined();
});
