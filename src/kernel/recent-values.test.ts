import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentValues } from './recent-values.ts';

describe('recent values', () => {
  it('say nothing while they are too few', () => {
    const recent = new RecentValues(8);
    expect(recent.quantile(0.5, 1)).toBeUndefined();
    for (let i = 1; i <= 4; i++) recent.add(i);
    expect([recent.quantile(0.5, 5), recent.quantile(0.5, 4)]).toEqual([undefined, 2]);
  });

  it('forget what is older than the last of them', () => {
    const recent = new RecentValues(16);
    for (let i = 0; i < 100; i++) recent.add(1000);
    for (let i = 0; i < 16; i++) recent.add(1);
    expect([recent.quantile(1, 1), recent.count]).toEqual([1, 16]);
  });

  it('tell the nearest rank of the values kept, at most 16 values late', () => {
    const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(
        values,
        fc.integer({ min: 1, max: 64 }),
        fc.constantFrom(0.1, 0.5, 0.95, 1),
        (all, size, q) => {
          const recent = new RecentValues(size);
          const possible: number[] = [];
          for (const [at, value] of all.entries()) {
            recent.add(value);
            const kept = all.slice(Math.max(0, at + 1 - size), at + 1).sort((a, b) => a - b);
            possible.push(kept[Math.max(0, Math.ceil(q * kept.length) - 1)]!);
            expect(possible.slice(-16)).toContain(recent.quantile(q, 1));
          }
        },
      ),
    );
  });
});
