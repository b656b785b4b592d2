import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SizeFloors } from './index.ts';

describe('a floor', () => {
  it('is near the least of its class, and of no other class', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 50, noNaN: true }), { minLength: 30, maxLength: 60 }),
        (waits) => {
          const floors = new SizeFloors();
          let small = 0;
          waits.forEach((wait, at) => {
            small = floors.observe(100 + wait, 10, at * 10);
            floors.observe(3000 + wait, 5000, at * 10);
          });
          expect(small).toBeGreaterThanOrEqual(100);
          expect(small).toBeLessThanOrEqual(150);
          expect(floors.observe(101, 10, 1000)).toBeLessThan(150);
        },
      ),
    );
  });

  it('goes down at once, and follows an engine that is slower for good within a minute or two', () => {
    const floors = new SizeFloors();
    for (let at = 0; at < 50; at++) floors.observe(100, 10, at * 100);
    expect(floors.observe(100, 10, 5_000)).toBe(100);
    let now = 5_000;
    while (now < 15_000) floors.observe(400, 10, (now += 100));
    const soon = floors.observe(400, 10, (now += 100));
    expect(soon).toBeGreaterThan(150);
    expect(soon).toBeLessThan(250);
    while (now < 125_000) floors.observe(400, 10, (now += 100));
    expect(floors.observe(400, 10, (now += 100))).toBeGreaterThan(380);
    for (let i = 0; i < 5; i++) floors.observe(100, 10, (now += 100));
    expect(floors.observe(100, 10, now + 100)).toBeLessThan(106);
  });

  it('does not believe one slow answer after a quiet night', () => {
    const floors = new SizeFloors();
    floors.observe(100, 10, 0);
    expect(floors.observe(9_000, 10, 8 * 3_600_000)).toBeLessThan(400);
  });
});
