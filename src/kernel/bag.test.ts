import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bag } from './bag.ts';

describe('Bag', () => {
  it('holds what a Set would hold, whatever is added and deleted', () => {
    const steps = fc.array(fc.tuple(fc.boolean(), fc.nat(9)), { maxLength: 200 });
    fc.assert(
      fc.property(steps, (done) => {
        const items = Array.from({ length: 10 }, (_, name) => ({ name, slot: -1 }));
        const bag = new Bag<(typeof items)[number]>();
        const set = new Set<(typeof items)[number]>();
        for (const [adds, at] of done) {
          if (adds) {
            bag.add(items[at]!);
            set.add(items[at]!);
          } else {
            bag.delete(items[at]!);
            set.delete(items[at]!);
          }
          expect(bag.size).toBe(set.size);
        }
        expect(new Set(bag)).toEqual(set);
        expect(items.filter(({ slot }) => slot >= 0).length).toBe(set.size);
      }),
    );
  });

  it('can be emptied while it is gone through', () => {
    const bag = new Bag<{ slot: number }>();
    for (let i = 0; i < 5; i++) bag.add({ slot: -1 });
    let seen = 0;
    for (const item of bag) {
      bag.delete(item);
      seen++;
    }
    expect([seen, bag.size]).toEqual([5, 0]);
  });
});
