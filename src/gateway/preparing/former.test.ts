import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Former, type Waiting } from './former.ts';

interface Row extends Waiting {
  name: number;
}

test('every text leaves once, in time, in a batch within its bounds', () => {
  const texts = fc.array(
    fc.record({
      tokens: fc.integer({ min: 1, max: 512 }),
      wait: fc.nat(20),
      gap: fc.nat(3),
      more: fc.nat(30),
    }),
    { maxLength: 200 },
  );
  const settings = fc.record({
    batchTokensMax: fc.integer({ min: 512, max: 2048 }),
    rowsMax: fc.integer({ min: 1, max: 40 }),
  });
  fc.assert(
    fc.property(texts, settings, fc.boolean(), (given, bounds, free) => {
      const former = new Former<Row>(bounds);
      const left: { rows: Row[]; at: number }[] = [];
      let now = 0;
      const turn = () => {
        for (let rows = former.next(now, free); rows; rows = former.next(now, free))
          left.push({ rows, at: now });
      };
      for (const [name, { tokens, wait, gap, more }] of given.entries()) {
        for (let step = 0; step < gap; step++) {
          turn();
          now++;
        }
        former.add({ name, tokens, dueAt: now + wait, lastAt: now + wait + more, turn: now });
      }
      turn();
      while (former.count > 0) {
        expect(former.dueAt(free)).toBeLessThan(Number.POSITIVE_INFINITY);
        now = Math.max(now, former.dueAt(free));
        turn();
      }
      const names = left.flatMap(({ rows }) => rows.map(({ name }) => name));
      expect(names.sort((a, b) => a - b)).toEqual([...given.keys()]);
      for (const { rows, at } of left) {
        const longest = Math.max(...rows.map(({ tokens }) => tokens));
        const sum = rows.reduce((total, { tokens }) => total + tokens, 0);
        expect(rows.length).toBeLessThanOrEqual(bounds.rowsMax);
        expect(longest * rows.length).toBeLessThanOrEqual(bounds.batchTokensMax);
        if (longest > 16) expect(longest * rows.length).toBeLessThanOrEqual(sum * 1.25 + rows.length);
        for (const { dueAt, lastAt } of rows) expect(at).toBeLessThanOrEqual(free ? dueAt : lastAt);
      }
      expect(former.dueAt(true)).toBe(Number.POSITIVE_INFINITY);
    }),
  );
});

const row = (name: number, tokens: number, more: Partial<Row> = {}): Row => ({
  name,
  tokens,
  dueAt: 10,
  lastAt: 100,
  turn: name,
  ...more,
});
const namesOf = (rows: Row[] | undefined) => rows?.map(({ name }) => name);

test('a batch leaves when it is full, and texts of like length go together', () => {
  const former = new Former<Row>({ batchTokensMax: 100, rowsMax: 4 });
  for (const each of [row(1, 30), row(2, 5), row(3, 31)]) former.add(each);
  expect(former.next(0, true)).toBeUndefined();
  former.add(row(4, 32));
  expect(namesOf(former.next(0, true))).toEqual([1, 3, 4]);
  expect(former.next(9, true)).toBeUndefined();
  expect(namesOf(former.next(10, true))).toEqual([2]);
  expect(former.count).toBe(0);
});

test('where no batch may leave only what has no more time does, and then the lowest turn goes first', () => {
  const former = new Former<Row>({ batchTokensMax: 100, rowsMax: 4 });
  former.add(row(1, 90));
  former.add(row(2, 8, { turn: 0 }));
  expect(former.next(50, false)).toBeUndefined();
  expect(former.dueAt(false)).toBe(100);
  expect(namesOf(former.next(50, true))).toEqual([2]);
  expect(namesOf(former.next(100, false))).toEqual([1]);
});

test('what nobody wants any more does not go', () => {
  const former = new Former<Row>({ batchTokensMax: 100, rowsMax: 4 });
  former.add(row(1, 8, { dueAt: 5 }));
  former.add(row(2, 8, { dueAt: 6 }));
  former.remove(({ name }) => name === 1);
  expect(former.dueAt(true)).toBe(6);
  expect(namesOf(former.next(6, true))).toEqual([2]);
  expect(former.count).toBe(0);
});
