import { describe, expect, it } from 'vitest';
import { bootstrapMedian, median } from './statistics.ts';

describe('a median', () => {
  it('is the middle value, or the mean of the two', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it('has an interval that holds it and narrows with more values', () => {
    const values = (count: number) => Array.from({ length: count }, (_, index) => ((index * 37) % 101) / 100);
    const few = bootstrapMedian(values(9));
    const many = bootstrapMedian(values(303));
    for (const { low, median: middle, high } of [few, many]) {
      expect(low).toBeLessThanOrEqual(middle);
      expect(high).toBeGreaterThanOrEqual(middle);
    }
    expect(many.high - many.low).toBeLessThan(few.high - few.low);
    expect(bootstrapMedian([5, 5, 5])).toEqual({ median: 5, low: 5, high: 5 });
  });
});
