import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { floorsOf, PriorityFloors, TRICKLE } from './index.ts';

const floors = floorsOf([0, 0.1, 0.05, 0.02]);

function serve(order: PriorityFloors, heads: number[], shares = floors): number {
  const { choice } = order.decide({ heads, floors: shares });
  order.observe({ heads, floors: shares, choice });
  return choice;
}

const heads = fc
  .array(fc.integer({ min: 0, max: 50 }), { minLength: 4, maxLength: 4 })
  .filter((all) => all.some((work) => work > 0));
const shares = fc
  .array(fc.double({ min: 0, max: 0.25, noNaN: true }), { minLength: 4, maxLength: 4 })
  .map(floorsOf);

describe('the order of priorities', () => {
  it('gives the place to the only one that waits, and owes nobody anything for it', () => {
    const order = new PriorityFloors();
    for (let i = 0; i < 400; i++) expect(serve(order, [0, 0, 7, 0])).toBe(2);
    expect(order.decide({ heads: [10, 0, 7, 0], floors }).choice).toBe(0);
    expect(order.decide({ heads: [0, 0, 7, 0], floors }).reason.code).toBe('only-priority');
  });

  it('goes by priority, save for what the floors of those below come to', () => {
    const order = new PriorityFloors();
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 10_000; i++) counts[serve(order, [10, 10, 10, 10])]!++;
    expect(counts[3]).toBeGreaterThanOrEqual(198);
    expect(counts[3]).toBeLessThanOrEqual(200);
    expect(counts[2]).toBeGreaterThanOrEqual(498);
    expect(counts[1]).toBeGreaterThanOrEqual(998);
    expect(counts[0]).toBeGreaterThanOrEqual(8_300);
  });

  it('says that it was a floor, and what was due', () => {
    const order = new PriorityFloors();
    const half = [0, 0, 0, 0.5];
    serve(order, [10, 0, 0, 10], half);
    expect(order.decide({ heads: [10, 0, 0, 10], floors: half }).reason.code).toBe('highest-priority');
    serve(order, [10, 0, 0, 10], half);
    expect(order.decide({ heads: [10, 0, 0, 10], floors: half })).toEqual({
      choice: 3,
      reason: { code: 'floor', figures: { floor: 0.5, owedTokens: 10 }, setting: 'gateway.floors' },
    });
  });

  it('makes one large request of a low priority wait for all that its floor has to come to', () => {
    const order = new PriorityFloors();
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 5_100; i++) counts[serve(order, [1, 0, 0, 100])]!++;
    expect(counts[3]).toBe(1);
  });

  it('always chooses somebody who waits, and one below the highest only within its floor', () => {
    fc.assert(
      fc.property(fc.array(heads, { maxLength: 300 }), shares, (all, each) => {
        const order = new PriorityFloors();
        // What was served by its floor of each, and all that was served while it waited.
        const byFloor = [0, 0, 0, 0];
        const contested = [0, 0, 0, 0];
        for (const now of all) {
          const choice = serve(order, now, each);
          expect(now[choice]).toBeGreaterThan(0);
          const work = now[choice]!;
          now.forEach((waits, at) => {
            if (waits > 0) contested[at]! += work;
          });
          if (choice === now.findIndex((waits) => waits > 0)) continue;
          byFloor[choice]! += work;
          expect(byFloor[choice]).toBeLessThanOrEqual(each[choice]! * contested[choice]! + 1e-6);
        }
      }),
    );
  });

  it('starves nobody: who goes on waiting has its floor of all that is served, less one request', () => {
    fc.assert(
      fc.property(
        fc.array(heads, { minLength: 100, maxLength: 300 }),
        fc.integer({ min: 1, max: 3 }),
        shares,
        (all, mine, each) => {
          const order = new PriorityFloors();
          let had = 0;
          let served = 0;
          for (const others of all) {
            const now = others.with(mine, 20);
            const choice = serve(order, now, each);
            served += now[choice]!;
            if (choice === mine) had += 20;
            // Others below it that are owed too may go a turn earlier.
            expect(had).toBeGreaterThanOrEqual(each[mine]! * served - 20 - 3 * 50);
          }
        },
      ),
    );
  });
});

describe('floors', () => {
  it('hold no less than the trickle each, and no more than everything together', () => {
    expect(floorsOf([0, 0, 0, 0])).toEqual([TRICKLE, TRICKLE, TRICKLE, TRICKLE]);
    const full = floorsOf([0, 0.5, 0.3, 0.2]);
    expect(full.reduce((a, b) => a + b)).toBeCloseTo(1);
    expect(full[3]).toBeGreaterThan(0.19);
  });
});
