import { expect, it } from 'vitest';
import { PeakEwma } from './index.ts';

it('follows a slower answer at once, and forgets it over ten seconds', () => {
  const mean = new PeakEwma();
  expect(mean.value).toBeUndefined();
  mean.observe(100, 0);
  mean.observe(900, 10);
  expect([mean.value, mean.at]).toEqual([900, 10]);
  mean.observe(100, 10_010);
  expect(mean.value).toBeCloseTo(100 + 800 / Math.E, 6);
  mean.observe(100, 110_010);
  expect(mean.value).toBeCloseTo(100, 1);
  mean.observe(50, 110_010);
  expect(mean.value).toBeCloseTo(100, 1);
});
