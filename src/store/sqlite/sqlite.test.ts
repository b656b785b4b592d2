import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../../events/contracts.ts';
import { idMaker } from '../../kernel/ids.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { type Store, StoreError } from '../contracts.ts';
import { Database } from './database.ts';
import { sqliteStore } from './index.ts';

let folder: string;
let path: string;
let time: VirtualTime;
let store: Store;
let losses: string[];
const makeId = idMaker('ev', seededRandom(1));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-sqlite-'));
  path = join(folder, 'state.db');
  time = new VirtualTime();
  losses = [];
  store = open();
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const open = () => sqliteStore({ path, clock: time, onLoss: (what) => losses.push(what) });

const event = (data: Record<string, unknown> = {}): LedgerEvent => ({
  id: makeId(time.wall()),
  at: new Date(time.wall()).toISOString(),
  type: 'worker-died',
  subject: 'worker:0',
  actor: 'armature',
  causes: [],
  data,
});

const key = (n: number) => ({
  id: `key_${n}`,
  tenant: 'web',
  name: '',
  hash: `sha256:${String(n).padStart(64, '0')}`,
  createdAt: '2026-01-01T00:00:00.000Z',
  createdBy: 'operator',
});

const stored = async () =>
  (await store.ledger.events({ order: 'asc', limit: 1000 })).map((it) => it.event.id);
const storeFirst = (events: LedgerEvent[]) =>
  store.ledger.storeBatches([{ boot: 'boot', sequence: 1, events }]);
const removeFiles = () => {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
};

test('keeps everything over a restart', async () => {
  const [a, b] = [event(), event()];
  await storeFirst([a]);
  await store.keys.create(key(1), b);
  await store.close();
  store = open();
  expect(await stored()).toEqual([a.id, b.id]);
  expect(await store.keys.list()).toEqual([key(1)]);
  expect(await storeFirst([a])).toEqual([false]);
});

test('puts keys on the disk before it says so, and events with the next checkpoint', () => {
  const database = new Database(join(folder, 'other.db'), () => undefined);
  const synchronous = () => database.get('PRAGMA synchronous')?.synchronous;
  expect(synchronous()).toBe(1);
  database.transaction(() => expect(synchronous()).toBe(2), { durable: true });
  database.transaction(() => expect(synchronous()).toBe(1));
  expect(() => database.transaction(() => database.exec('nonsense'), { durable: true })).toThrow(StoreError);
  expect(synchronous()).toBe(1);
  database.close();
});

test('stores all of a transaction or nothing', async () => {
  const broken = { ...event(), data: { circle: {} } };
  broken.data.circle = broken.data;
  await expect(storeFirst([event(), broken])).rejects.toThrow();
  expect(await stored()).toEqual([]);
  expect(await storeFirst([event()])).toEqual([true]);
});

describe('a file that is removed under it', () => {
  test('is made anew with keys, snapshots, overlays and the newest events', async () => {
    const published = event();
    const snapshot = { number: 7, event: published.id, at: published.at, settings: { a: 1 }, origins: {} };
    await store.snapshots.publish(snapshot, published);
    await store.keys.create(key(1), event());
    const overlay = { path: 'a', value: 2, actor: 'operator', at: published.at, event: 'ev_1' };
    await store.overlays.change([overlay], [], event());
    await storeFirst([event()]);
    const before = await stored();

    removeFiles();
    await time.advance(1000);
    const late = event();
    await store.ledger.append([late]);
    expect(existsSync(path)).toBe(true);
    expect(losses).toEqual([expect.stringContaining('was removed and made anew')]);

    await store.close();
    store = open();
    expect(await stored()).toEqual([...before, late.id]);
    expect(await store.keys.list()).toEqual([key(1)]);
    expect(await store.overlays.list()).toEqual([overlay]);
    expect(await store.snapshots.last()).toEqual(snapshot);
    expect(await storeFirst([event()])).toEqual([false]);
  });

  test('leaves behind what is old, and says how much', async () => {
    for (let n = 0; n < 12; n++) await store.ledger.append(Array.from({ length: 1000 }, () => event()));
    removeFiles();
    await time.advance(1000);
    expect((await store.ledger.extent()).events).toBe(10_000);
    expect(losses).toEqual([expect.stringContaining('2000 older events are lost')]);
  });

  test('is waited for when its whole folder is gone', async () => {
    await store.keys.create(key(1), event());
    rmSync(folder, { recursive: true });
    await time.advance(1000);
    await expect(store.ledger.append([event()])).rejects.toMatchObject({ trouble: 'gone' });
    mkdirSync(folder);
    await time.advance(1000);
    await store.ledger.append([event()]);
    expect(await store.keys.list()).toEqual([key(1)]);
    expect(await stored()).toHaveLength(2);
  });

  test('survives the loss of its log alone', async () => {
    await store.keys.create(key(1), event());
    rmSync(`${path}-wal`);
    await time.advance(1000);
    await store.ledger.append([event()]);
    await store.close();
    store = open();
    expect(await stored()).toHaveLength(2);
    expect(await store.keys.list()).toEqual([key(1)]);
  });
});

test('takes a file that was put in the place of its own', async () => {
  const other = join(folder, 'backup.db');
  const backup = sqliteStore({ path: other, clock: time });
  await backup.keys.create(key(2), event());
  await backup.close();
  await store.keys.create(key(1), event());
  removeFiles();
  renameSync(other, path);
  await time.advance(1000);
  expect(await store.keys.list()).toEqual([key(2)]);
  expect(losses).toEqual([expect.stringContaining('was replaced by another file')]);
});

test('says that the disk is full, and goes on when it is not', async () => {
  const database = new Database(join(folder, 'small.db'), () => undefined);
  database.exec('CREATE TABLE filler (text TEXT)');
  const pages = Number(database.get('PRAGMA page_count')?.page_count);
  database.get(`PRAGMA max_page_count = ${pages + 10}`);
  const fill = () =>
    database.transaction(() => database.run('INSERT INTO filler VALUES (?)', 'x'.repeat(100_000)));
  expect(fill).toThrow(expect.objectContaining({ trouble: 'full' }));
  database.get(`PRAGMA max_page_count = ${pages + 1000}`);
  fill();
  expect(database.get('SELECT count(*) AS count FROM filler')).toEqual({ count: 1 });
  database.close();
});

test('says that the file is held by another, after waiting a tenth of a second for it', async () => {
  const database = new Database(join(folder, 'other.db'), () => undefined);
  expect(database.get('PRAGMA busy_timeout')).toEqual({ timeout: 100 });
  database.close();
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  await expect(store.ledger.append([event()])).rejects.toMatchObject({ trouble: 'busy' });
  other.exec('ROLLBACK');
  other.close();
  await store.ledger.append([event()]);
});

test('refuses a file that is no database, or of a newer Armature', async () => {
  const junk = join(folder, 'junk.db');
  writeFileSync(junk, 'x'.repeat(10_000));
  expect(() => sqliteStore({ path: junk, clock: time })).toThrow(
    expect.objectContaining({ trouble: 'corrupt' }),
  );
  const newer = join(folder, 'newer.db');
  const database = new DatabaseSync(newer);
  database.exec('PRAGMA user_version = 999');
  database.close();
  expect(() => sqliteStore({ path: newer, clock: time })).toThrow(/newer Armature/);
});

test('gives pages back to the disk when much is removed', async () => {
  for (let n = 0; n < 30; n++)
    await store.ledger.append(Array.from({ length: 100 }, () => event({ text: 'x'.repeat(3000) })));
  await time.advance(1);
  const before = (await store.ledger.extent()).bytes;
  for (let more = true; more; ) {
    more = (await store.ledger.trim({ since: time.wall(), bytesMax: Number.MAX_SAFE_INTEGER }, 200)).more;
  }
  expect((await store.ledger.extent()).bytes).toBeLessThan(before / 10);
  const database = new DatabaseSync(path);
  const { page_count: pages } = database.prepare('PRAGMA page_count').get() as { page_count: number };
  database.close();
  expect(pages * 4096).toBeLessThan(before * 0.8);
});
