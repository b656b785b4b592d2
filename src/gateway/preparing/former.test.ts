import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Former } from './former.ts';

interface Row {
  name: number;
  tokens: number;
  dueAt: number;
}

test('every text leaves once, in time, in a batch within its bounds', () => {
  const rows = fc.array(
    fc.record({ tokens: fc.integer({ min: 1, max: 512 }), wait: fc.nat(20), gap: fc.nat(3) }),
    {
      maxLength: 200,
    },
  );
  const settings = fc.record({
    batchTokensMax: fc.integer({ min: 512, max: 2048 }),
    rowsMax: fc.integer({ min: 1, max: 40 }),
  });
  fc.assert(
    fc.property(rows, settings, (given, bounds) => {
      const former = new Former<Row>(bounds);
      const left: { rows: Row[]; at: number }[] = [];
      let now = 0;
      const turn = () => {
        for (let batch = former.due(now); batch; batch = former.due(now)) left.push({ rows: batch, at: now });
      };
      for (const [name, { tokens, wait, gap }] of given.entries()) {
        for (let step = 0; step < gap; step++) {
          turn();
          now++;
          turn();
        }
        const full = former.add({ name, tokens, dueAt: now + wait });
        if (full) left.push({ rows: full, at: now });
      }
      while (former.count > 0) {
        expect(former.dueAt).toBeLessThan(Number.POSITIVE_INFINITY);
        now = Math.max(now, former.dueAt);
        turn();
      }
      expect(left.flatMap(({ rows: batch }) => batch.map(({ name }) => name)).sort((a, b) => a - b)).toEqual([
        ...given.keys(),
      ]);
      for (const { rows: batch, at } of left) {
        const longest = Math.max(...batch.map(({ tokens }) => tokens));
        const sum = batch.reduce((total, { tokens }) => total + tokens, 0);
        expect(batch.length).toBeLessThanOrEqual(bounds.rowsMax);
        expect(longest * batch.length).toBeLessThanOrEqual(bounds.batchTokensMax);
        if (longest > 16) expect(longest * batch.length).toBeLessThanOrEqual(sum * 1.25 + batch.length);
        for (const { dueAt } of batch) expect(at).toBeLessThanOrEqual(dueAt);
      }
      expect(former.dueAt).toBe(Number.POSITIVE_INFINITY);
    }),
  );
});

test('a batch leaves when it is full, and texts of like length go together', () => {
  const former = new Former<Row>({ batchTokensMax: 100, rowsMax: 4 });
  const row = (name: number, tokens: number, dueAt = 10): Row => ({ name, tokens, dueAt });
  expect(former.add(row(1, 30))).toBeUndefined();
  expect(former.add(row(2, 5))).toBeUndefined();
  expect(former.add(row(3, 31))).toBeUndefined();
  expect(former.add(row(4, 32))?.map(({ name }) => name)).toEqual([1, 3, 4]);
  expect(former.count).toBe(1);
  expect(former.due(9)).toBeUndefined();
  expect(former.due(10)?.map(({ name }) => name)).toEqual([2]);
});

test('what nobody wants any more does not go', () => {
  const former = new Former<Row>({ batchTokensMax: 100, rowsMax: 4 });
  former.add({ name: 1, tokens: 8, dueAt: 5 });
  former.add({ name: 2, tokens: 8, dueAt: 6 });
  former.remove(({ name }) => name === 1);
  expect(former.dueAt).toBe(6);
  expect(former.due(6)?.map(({ name }) => name)).toEqual([2]);
  expect(former.count).toBe(0);
});
