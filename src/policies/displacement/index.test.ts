import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { floorsOf } from '../priority-floors/index.ts';
import { Displacement, type Newcomer, type Standing } from './index.ts';

const floors = floorsOf([0, 0.1, 0.05, 0.02]);
const of = (rank: number, tenant: string, work = 10, share = 1): Newcomer => ({ rank, tenant, work, share });

function queue(...all: Newcomer[]): Displacement<string> {
  const waiting = new Displacement<string>(4);
  all.forEach((one, at) => {
    waiting.add(`${one.tenant}${at}`, one);
  });
  return waiting;
}

describe('who yields in a full queue', () => {
  it('is the newest of the lowest priority', () => {
    const waiting = queue(of(3, 'a'), of(3, 'b', 30), of(3, 'b', 5), of(1, 'c'), of(2, 'd'));
    expect(waiting.decide(of(0, 'e'), floors, 5)).toEqual({ item: 'b2', rule: 'lower-priority' });
    expect(waiting.decide(of(2, 'e'), floors, 5)).toEqual({ item: 'b2', rule: 'lower-priority' });
  });

  it('is the newest of the tenant with the most tokens for its share, within a priority', () => {
    const waiting = queue(of(2, 'flood', 40), of(2, 'flood', 40), of(2, 'half', 60, 0.5), of(2, 'd'));
    expect(waiting.decide(of(2, 'e'), floors, 4)).toEqual({ item: 'half2', rule: 'tenant-over-share' });
    expect(waiting.decide(of(2, 'flood'), floors, 4)).toEqual({ item: 'half2', rule: 'tenant-over-share' });
    expect(waiting.decide(of(2, 'half', 10, 0.5), floors, 4)).toBe(undefined);
  });

  it('is nobody where the newcomer would have as much as the one with most', () => {
    const waiting = queue(of(2, 'a'), of(2, 'b'));
    expect(waiting.decide(of(2, 'c', 10), floors, 2)).toBe(undefined);
    expect(waiting.decide(of(2, 'c', 9), floors, 2)).toEqual({ item: 'a0', rule: 'tenant-over-share' });
    expect(waiting.decide(of(3, 'c', 1), floors, 2)).toBe(undefined);
  });

  it('leaves each priority the places of its floor, and gives them to it', () => {
    const max = 100;
    const full = queue(...Array.from({ length: 99 }, () => of(1, 'a')), of(3, 'b'));
    expect(full.decide(of(0, 'c'), floors, max)).toEqual({ item: 'a98', rule: 'lower-priority' });
    expect(full.decide(of(3, 'b'), floors, max)).toEqual({ item: 'a98', rule: 'priority-under-floor' });
    full.add('b100', of(3, 'b'));
    expect(full.decide(of(3, 'c'), floors, max)).toEqual({ item: 'b100', rule: 'tenant-over-share' });
    expect(full.decide(of(3, 'b'), floors, max)).toBe(undefined);
  });

  it('forgets whoever leaves', () => {
    const waiting = new Displacement<string>(4);
    const one = waiting.add('one', of(3, 'a'));
    waiting.add('two', of(3, 'a'));
    waiting.remove(one);
    waiting.remove(one);
    expect([waiting.count, waiting.waitingOf(3)]).toEqual([1, 1]);
    expect(waiting.decide(of(1, 'b'), floors, 1)?.item).toBe('two');
  });

  it('never yields to one that has no less, and never goes below its floor, whoever comes and goes', () => {
    const newcomer = fc.record({
      rank: fc.nat(3),
      tenant: fc.constantFrom('a', 'b', 'c'),
      work: fc.integer({ min: 1, max: 50 }),
      share: fc.constant(1),
      leaves: fc.option(fc.nat(40), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(newcomer, { maxLength: 150 }), fc.constantFrom(4, 20, 40), (all, max) => {
        const waiting = new Displacement<number>(4);
        const held = new Map<number, { one: Newcomer; standing: Standing<number> }>();
        const tokens = (rank: number, tenant: string) =>
          [...held.values()].reduce(
            (sum, { one }) => sum + (one.rank === rank && one.tenant === tenant ? one.work : 0),
            0,
          );
        all.forEach((one, number) => {
          const gone = one.leaves === undefined ? undefined : held.get(one.leaves);
          if (gone) {
            waiting.remove(gone.standing);
            held.delete(one.leaves!);
          }
          if (waiting.count >= max) {
            const yielding = waiting.decide(one, floors, max);
            if (!yielding) return;
            const other = held.get(yielding.item)!;
            const counts = waiting.waitingOf(other.one.rank);
            if (yielding.rule === 'lower-priority') expect(other.one.rank).toBeGreaterThan(one.rank);
            if (yielding.rule === 'priority-under-floor') expect(other.one.rank).toBeLessThan(one.rank);
            if (yielding.rule === 'tenant-over-share') {
              expect(other.one.rank).toBe(one.rank);
              expect(tokens(one.rank, one.tenant) + one.work).toBeLessThan(
                tokens(one.rank, other.one.tenant),
              );
            } else if (max >= 16) expect(counts).toBeGreaterThan(Math.floor(floors[other.one.rank]! * max));
            waiting.remove(other.standing);
            held.delete(yielding.item);
          }
          held.set(number, { one, standing: waiting.add(number, one) });
          expect(waiting.count).toBe(held.size);
        });
      }),
    );
  });
});
