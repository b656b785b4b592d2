import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Batcher } from './batcher.ts';

/** Computes a row as its sum; the batches that were asked for are kept, and each is let through by hand. */
function rig(fails: (row: number[]) => boolean = () => false) {
  const batches: number[][][] = [];
  const gates: (() => void)[] = [];
  const batcher = new Batcher(async (rows) => {
    batches.push(rows);
    await new Promise<void>((resolve) => gates.push(resolve));
    if (rows.some(fails)) throw new Error('a bad row');
    return rows.map((row) => Float32Array.of(row.reduce((sum, value) => sum + value, 0)));
  }, 8192);
  return { batcher, batches, open: () => gates.shift()?.() };
}

const here = new AbortController().signal;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('what comes while one batch runs makes the next, and each caller gets its own rows', async () => {
  const { batcher, batches, open } = rig();
  const first = batcher.embed([[1]], here);
  const second = batcher.embed([[2], [3, 4]], here);
  const third = batcher.embed([[5]], here);
  expect(batcher.waiting).toBe(3);
  open();
  await turn();
  open();
  expect(await first).toEqual([Float32Array.of(1)]);
  expect(await second).toEqual([Float32Array.of(2), Float32Array.of(7)]);
  expect(await third).toEqual([Float32Array.of(5)]);
  expect(batches).toEqual([[[1]], [[2], [5], [3, 4]]]);
  expect([batcher.waiting, batcher.running]).toEqual([0, 0]);
});

test('a row that fails fails alone', async () => {
  const { batcher, open } = rig((row) => row[0] === 13);
  const first = batcher.embed([[1]], here);
  const good = batcher.embed([[2]], here);
  const bad = batcher.embed([[13]], here);
  const failed = expect(bad).rejects.toThrow('a bad row');
  for (let step = 0; step < 4; step++) {
    open();
    await turn();
  }
  await failed;
  expect(await first).toEqual([Float32Array.of(1)]);
  expect(await good).toEqual([Float32Array.of(2)]);
});

test('rows whose caller has left are not computed', async () => {
  const { batcher, batches, open } = rig();
  const leaving = new AbortController();
  const first = batcher.embed([[1]], here);
  const gone = batcher.embed([[2]], leaving.signal);
  leaving.abort();
  open();
  await first;
  expect(await gone).toBeUndefined();
  expect(batches).toEqual([[[1]]]);
});

test('batches are bounded by rows and by tokens, rows of one are alike in length, and what waits is bounded', async () => {
  const { batcher, batches, open } = rig();
  const first = batcher.embed([[0]], here);
  const many = batcher.embed(
    Array.from({ length: 40 }, () => [1]),
    here,
  );
  const long = batcher.embed(
    Array.from({ length: 3 }, () => Array.from({ length: 4000 }, () => 1)),
    here,
  );
  for (let step = 0; step < 5; step++) {
    open();
    await turn();
  }
  await Promise.all([first, many, long]);
  expect(batches.map((rows) => rows.length)).toEqual([1, 32, 2, 8, 1]);
  const tooMany = Array.from({ length: 8193 }, () => [1]);
  await expect(batcher.embed(tooMany, here)).rejects.toThrow('wait already');
});

test('a long list holds up nobody', async () => {
  const { batcher, batches, open } = rig();
  const first = batcher.embed([[0]], here);
  void batcher.embed(
    Array.from({ length: 1000 }, () => [1]),
    here,
  );
  const late = batcher.embed([[2]], here);
  open();
  await turn();
  open();
  expect(await late).toEqual([Float32Array.of(2)]);
  await first;
  expect(batches[1]!.slice(0, 3)).toEqual([[1], [2], [1]]);
});

test('all rows that are asked for come back in their order, whoever asks beside', async () => {
  const asks = fc.array(
    fc.array(fc.array(fc.nat(9), { minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 50 }),
    {
      maxLength: 8,
    },
  );
  await fc.assert(
    fc.asyncProperty(asks, async (lists) => {
      const batcher = new Batcher(async (rows) => rows.map((row) => Float32Array.from(row)), 8192);
      const made = await Promise.all(lists.map((rows) => batcher.embed(rows, here)));
      expect(made).toEqual(lists.map((rows) => rows.map((row) => Float32Array.from(row))));
      expect([batcher.waiting, batcher.running]).toEqual([0, 0]);
    }),
  );
});
