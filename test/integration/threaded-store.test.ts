import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ThreadedDatabase } from '../../src/store/sqlite/threaded.ts';
import type words from './stored-words.ts';

type Words = ThreadedDatabase<ReturnType<typeof words.operations>>;

const module = new URL('./stored-words.ts', import.meta.url);
let folder: string;
let path: string;
let opened: Words[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-threaded-'));
  path = join(folder, 'words.db');
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
  rmSync(folder, { recursive: true, force: true });
});

function open(options: { busyMs?: number; callsMax?: number } = {}): Words {
  const store: Words = new ThreadedDatabase({ path, module, ...options });
  opened.push(store);
  return store;
}

test('keeps what was put, for its owner alone, over an opening', async () => {
  const store = open();
  expect(await store.call('put', { words: ['b', 'a'] })).toBe(2);
  expect(await store.call('list', {})).toEqual(['a', 'b']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await store.close();
  await expect(store.call('list', {})).rejects.toMatchObject({ trouble: 'closed' });
  expect(await open().call('list', {})).toEqual(['a', 'b']);
});

test('undoes a call that fails, and none of those beside it', async () => {
  const store = open();
  const [first, second, third, last] = await Promise.allSettled([
    store.call('put', { words: ['a'] }),
    store.call('put', { words: ['b', 'a'] }),
    store.call('refuse', { word: 'c' }),
    store.call('put', { words: ['d'] }),
  ]);
  expect([first.status, last.status]).toEqual(['fulfilled', 'fulfilled']);
  expect(second).toMatchObject({ reason: { trouble: 'conflict' } });
  expect(third).toMatchObject({ reason: { trouble: 'conflict', message: 'not c' } });
  expect(await store.call('list', {})).toEqual(['a', 'd']);
});

test('stores everything that was called before it closes', async () => {
  const store = open();
  const puts = Array.from({ length: 1000 }, (_, n) => store.call('put', { words: [`w${n}`] }));
  await store.close();
  await Promise.all(puts);
  expect(await open().call('list', {})).toHaveLength(1000);
});

test('lets several write the same file at once', async () => {
  const stores = [open(), open(), open()];
  const puts = stores.flatMap((store, s) =>
    Array.from({ length: 200 }, (_, n) => store.call('put', { words: [`${s}-${n}`] })),
  );
  await Promise.all(puts);
  expect(await stores[0]!.call('list', {})).toHaveLength(600);
});

test('has so many calls wait at most', async () => {
  const store = open({ callsMax: 2 });
  const calls = ['a', 'b', 'c'].map((word) => store.call('put', { words: [word] }));
  await expect(calls[2]).rejects.toMatchObject({ trouble: 'busy' });
  await Promise.all(calls.slice(0, 2));
});

test('says that another holds the file; who only reads does not wait', async () => {
  const store = open({ busyMs: 50 });
  await store.call('put', { words: ['a'] });
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  await expect(store.call('put', { words: ['b'] })).rejects.toMatchObject({ trouble: 'busy' });
  expect(await store.call('list', {})).toEqual(['a']);
  other.exec('ROLLBACK');
  other.close();
  await store.call('put', { words: ['b'] });
});

test('says that the disk is full, undoes what did not fit, and goes on when it is not', async () => {
  const store = open();
  await store.call('put', { words: ['a'] });
  await store.call('limit', { pages: 10 });
  await expect(store.call('put', { words: ['x'.repeat(100_000)] })).rejects.toMatchObject({
    trouble: 'full',
  });
  await store.call('limit', { pages: 10_000 });
  await store.call('put', { words: ['b'] });
  expect(await store.call('list', {})).toEqual(['a', 'b']);
});

test('tells what ran when its thread dies, and starts another', async () => {
  const store = open();
  await store.call('put', { words: ['a'] });
  // Whether the thread's last word comes before word of its death is chance.
  const [death] = await Promise.allSettled([store.call('die', {})]);
  const calls = await Promise.allSettled([store.call('put', { words: ['b'] }), store.call('list', {})]);
  for (const call of [death, ...calls]) {
    if (call.status === 'rejected') expect(call.reason).toMatchObject({ trouble: 'failed' });
  }
  expect(await store.call('list', {})).toContain('a');
});

test('rejects what cannot be copied to the thread, and does the rest', async () => {
  const store = open();
  await expect(store.call('put', { words: [(() => 'a') as never] })).rejects.toMatchObject({
    trouble: 'failed',
  });
  expect(await store.call('put', { words: ['a'] })).toBe(1);
});
