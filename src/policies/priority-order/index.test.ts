import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PriorityOrder } from './index.ts';

const waiting = fc
  .array(fc.nat(3), { minLength: 4, maxLength: 4 })
  .filter((counts) => counts.some((count) => count > 0));

describe('the order of priorities', () => {
  it('gives the place to the only one that waits, without taking a turn from anybody', () => {
    const order = new PriorityOrder();
    for (let i = 0; i < 40; i++) expect(order.decide({ waiting: [0, 0, 7, 0] }).choice).toBe(2);
    for (let i = 0; i < 15; i++) expect(order.decide({ waiting: [1, 0, 0, 1] }).choice).toBe(0);
    expect(order.decide({ waiting: [1, 0, 0, 1] })).toEqual({
      choice: 3,
      reason: { code: 'trickle', figures: { one: 16 } },
    });
  });

  it('gives the highest fifteen of sixteen contested places, and the lower ones the rest in turn', () => {
    const order = new PriorityOrder();
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 16 * 30; i++) counts[order.decide({ waiting: [5, 5, 5, 5] }).choice]!++;
    expect(counts).toEqual([15 * 30, 10, 10, 10]);
  });

  it('always chooses somebody who waits: the highest, save for one contested place of sixteen', () => {
    fc.assert(
      fc.property(fc.array(waiting, { maxLength: 200 }), (places) => {
        const order = new PriorityOrder();
        let contested = 0;
        for (const counts of places) {
          const { choice, reason } = order.decide({ waiting: counts });
          expect(counts[choice]).toBeGreaterThan(0);
          const highest = counts.findIndex((count) => count > 0);
          const alone = counts.findLastIndex((count) => count > 0) === highest;
          const trickle = !alone && ++contested % 16 === 0;
          if (trickle) expect(choice).toBeGreaterThan(highest);
          else expect(choice).toBe(highest);
          expect(reason.code).toBe(alone ? 'only-priority' : trickle ? 'trickle' : 'highest-priority');
        }
      }),
    );
  });

  it('starves nobody: who goes on waiting below others is served within 48 places, whoever comes and goes', () => {
    const others = fc.array(waiting, { minLength: 48, maxLength: 48 });
    fc.assert(
      fc.property(others, fc.integer({ min: 1, max: 3 }), fc.nat(100), (places, mine, before) => {
        const order = new PriorityOrder();
        for (let i = 0; i < before; i++) order.decide({ waiting: places[i % 48]! });
        const served = places.some((counts) => {
          const now = counts.map((count, at) => (at === mine ? count + 1 : count));
          return order.decide({ waiting: now }).choice === mine;
        });
        expect(served).toBe(true);
      }),
    );
  });
});
