import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../events/contracts.ts';
import { idMaker } from '../kernel/ids.ts';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Store, StoredKey, StoredSnapshot } from './contracts.ts';
import { memoryStore } from './memory/index.ts';
import { sqliteStore } from './sqlite/index.ts';

/** What every store must do, whatever stands behind it. */

const DAY_MS = 86_400_000;
const EPOCH_MS = Date.UTC(2026, 0, 1);
const makeId = idMaker('evt', seededRandom(1));
const FOREVER = { since: 0, bytesMax: Number.MAX_SAFE_INTEGER };

function event(over: Partial<LedgerEvent> & { atMs?: number } = {}): LedgerEvent {
  const { atMs = EPOCH_MS, ...fields } = over;
  return {
    id: makeId(atMs),
    at: new Date(atMs).toISOString(),
    type: 'worker-died',
    subject: 'worker:0',
    actor: 'armature',
    causes: [],
    data: {},
    ...fields,
  };
}

const request = (number: number, atMs: number, requestId?: string) =>
  event({ atMs, type: 'request-failed', data: { snapshot: number, ...(requestId ? { requestId } : {}) } });

const snapshot = (number: number, published: LedgerEvent, settings: unknown = {}): StoredSnapshot => ({
  number,
  event: published.id,
  at: published.at,
  settings,
  origins: { 'routes.chat.deadline': { file: 'armature.yaml', line: 3 } },
});

const key = (id: string): StoredKey => ({
  id,
  tenant: 'web',
  name: '',
  hash: `sha256:${id.padEnd(64, '0')}`,
  createdAt: new Date(EPOCH_MS).toISOString(),
  createdBy: 'operator',
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-store-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe.each(['memory', 'sqlite'])('%s', (kind) => {
  let store: Store;
  beforeEach(() => {
    store =
      kind === 'memory'
        ? memoryStore()
        : sqliteStore({ path: join(folder, 'state.db'), clock: new VirtualTime(EPOCH_MS) });
  });
  afterEach(() => store.close());

  const ids = async (query: Parameters<Store['ledger']['events']>[0]) =>
    (await store.ledger.events(query)).map((stored) => stored.event.id);

  test('gives an event back as it was stored', async () => {
    const stored = event({ causes: ['evt_a', 'evt_b'], data: { nested: { figure: 1.5, word: 'é\n"' } } });
    await store.ledger.append([stored]);
    expect((await store.ledger.event(stored.id))?.event).toEqual(stored);
    expect(await store.ledger.event('evt_unknown')).toBeUndefined();
  });

  test('keeps documents by revision: what was made on another is refused whole', async () => {
    const { documents } = store;
    const told = [event(), event()];
    await documents.change(
      [
        { kind: 'release', id: 'b', body: { step: 1 }, on: 0 },
        { kind: 'release', id: 'a', body: { step: 1 }, on: 0 },
      ],
      [told[0]!],
    );
    await documents.change([{ kind: 'release', id: 'a', body: { step: 2 }, on: 1 }], []);
    const stale = documents.change(
      [
        { kind: 'release', id: 'b', body: { step: 9 }, on: 1 },
        { kind: 'release', id: 'a', body: { step: 9 }, on: 1 },
      ],
      [told[1]!],
    );
    await expect(stale).rejects.toMatchObject({ trouble: 'conflict' });
    await expect(documents.change([{ kind: 'release', id: 'a', body: {}, on: 0 }], [])).rejects.toMatchObject(
      { trouble: 'conflict' },
    );
    expect(await documents.list('release', 10)).toEqual([
      { kind: 'release', id: 'a', revision: 2, body: { step: 2 } },
      { kind: 'release', id: 'b', revision: 1, body: { step: 1 } },
    ]);
    expect((await documents.list('release', 1, 'a')).map(({ id }) => id)).toEqual(['b']);
    expect(await store.ledger.event(told[0]!.id)).toBeDefined();
    expect(await store.ledger.event(told[1]!.id)).toBeUndefined();
    await documents.change([{ kind: 'release', id: 'a', on: 2 }], []);
    expect(await documents.get('release', 'a')).toBeUndefined();
    await expect(documents.change([{ kind: 'release', id: 'a', on: 0 }], [])).rejects.toMatchObject({
      trouble: 'conflict',
    });
  });

  test('stores a batch once, in whatever order batches come', async () => {
    const batches = [3, 1, 2, 7, 2, 1, 6, 5, 3, 7].map((sequence) => ({ sequence, event: event() }));
    const stored: number[] = [];
    for (const batch of batches) {
      const { sequence } = batch;
      const [fresh] = await store.ledger.storeBatches([{ boot: 'boot', sequence, events: [batch.event] }]);
      if (fresh) stored.push(sequence);
    }
    expect(stored).toEqual([3, 1, 2, 7, 6, 5]);
    expect(await ids({ order: 'asc', limit: 100 })).toHaveLength(6);
    const another = { boot: 'another boot', sequence: 1, events: [event()] };
    const news = { ...another, sequence: 2, events: [event()] };
    expect(await store.ledger.storeBatches([another, another, news])).toEqual([true, false, true]);
    expect(await ids({ order: 'asc', limit: 100 })).toHaveLength(8);
  });

  test('leaves an event that is stored already as it is', async () => {
    const first = event();
    await store.ledger.append([first]);
    await store.ledger.append([{ ...first, data: { changed: true } }, event()]);
    expect((await store.ledger.event(first.id))?.event).toEqual(first);
    expect(await ids({ order: 'asc', limit: 100 })).toHaveLength(2);
  });

  test('lists events both ways, by type and by subject, page by page', async () => {
    const events = Array.from({ length: 9 }, (_, i) =>
      event({
        type: i % 2 ? 'breaker-opened' : 'worker-died',
        subject: i < 5 ? 'worker:0' : 'worker:1',
      }),
    );
    await store.ledger.append(events);
    const all = events.map((it) => it.id);
    expect(await ids({ order: 'asc', limit: 100 })).toEqual(all);
    expect(await ids({ order: 'desc', limit: 3 })).toEqual(all.slice(6).reverse());
    expect(await ids({ order: 'asc', limit: 100, type: 'breaker-opened' })).toEqual(
      events.filter((it) => it.type === 'breaker-opened').map((it) => it.id),
    );
    expect(await ids({ order: 'desc', limit: 2, subject: 'worker:0', type: 'worker-died' })).toEqual([
      all[4],
      all[2],
    ]);
    const after = (await store.ledger.position(all[5]!))!;
    expect(await ids({ order: 'asc', limit: 2, after })).toEqual([all[6], all[7]]);
    expect(await ids({ order: 'desc', limit: 2, after })).toEqual([all[4], all[3]]);
    expect(await store.ledger.head()).toBe(await store.ledger.position(all[8]!));
  });

  test('finds the place of an id that is not stored by the time it carries', async () => {
    expect(await store.ledger.head()).toBe(0);
    const [early, late] = [event({ atMs: EPOCH_MS }), event({ atMs: EPOCH_MS + 10_000 })];
    await store.ledger.append([early, late]);
    expect(await store.ledger.position(makeId(EPOCH_MS + 5_000))).toBe(await store.ledger.position(early.id));
    expect(await store.ledger.position(makeId(EPOCH_MS - 5_000))).toBe(0);
    expect(await store.ledger.position('no id')).toBeUndefined();
  });

  test("finds requests by the caller's id, newest first, and groups by second", async () => {
    const [first, second] = [request(1, EPOCH_MS, 'mine'), request(1, EPOCH_MS + 1, 'mine')];
    const group = event({ type: 'requests-grouped', data: { second: 1_700_000_000, count: 5 } });
    await store.ledger.append([first, second, request(1, EPOCH_MS, 'other'), group]);
    expect((await store.ledger.requests('mine', 10)).map((it) => it.event.id)).toEqual([second.id, first.id]);
    expect((await store.ledger.groups(1_700_000_000, 10)).map((it) => it.event.id)).toEqual([group.id]);
    expect(await store.ledger.groups(1_700_000_001, 10)).toEqual([]);
  });

  test('removes events by age, oldest first, in steps', async () => {
    const events = Array.from({ length: 10 }, (_, i) => event({ atMs: EPOCH_MS + i }));
    await store.ledger.append(events);
    const keep = { ...FOREVER, since: EPOCH_MS + 7 };
    expect(await store.ledger.trim(keep, 4)).toEqual({ removed: 4, more: true });
    expect(await ids({ order: 'asc', limit: 1 })).toEqual([events[4]!.id]);
    expect(await store.ledger.trim(keep, 4)).toEqual({ removed: 3, more: false });
    expect(await ids({ order: 'asc', limit: 100 })).toEqual(events.slice(7).map((it) => it.id));
    expect((await store.ledger.extent()).oldestMs).toBe(EPOCH_MS + 7);
  });

  test('removes events by size, oldest first', async () => {
    const data = { text: 'x'.repeat(10_000) };
    for (let i = 0; i < 50; i++) await store.ledger.append([event({ atMs: EPOCH_MS + i, data })]);
    const { bytes } = await store.ledger.extent();
    const bytesMax = bytes / 2;
    for (let more = true; more; ) more = (await store.ledger.trim({ since: 0, bytesMax }, 5)).more;
    const extent = await store.ledger.extent();
    expect(extent.bytes).toBeLessThanOrEqual(bytesMax);
    expect(extent.events).toBeGreaterThan(10);
    const newest = await store.ledger.events({ order: 'desc', limit: 1 });
    expect(newest[0]?.event.at).toBe(new Date(EPOCH_MS + 49).toISOString());
  });

  test('keeps snapshots that kept events were decided on, what published them, and the last', async () => {
    const days = (count: number) => EPOCH_MS + count * DAY_MS;
    const published = [1, 2, 3, 4].map((number) => event({ atMs: days(number), type: 'snapshot-published' }));
    for (const [i, it] of published.entries()) await store.snapshots.publish(snapshot(i + 1, it), it);
    await store.ledger.append([request(1, days(1)), request(2, days(30)), request(4, days(31))]);
    await store.ledger.trim({ ...FOREVER, since: days(10) }, 100);

    expect(await store.snapshots.get(1)).toBeUndefined();
    expect((await store.snapshots.get(2))?.event).toBe(published[1]!.id);
    expect((await store.snapshots.last())?.number).toBe(4);
    await store.ledger.trim({ ...FOREVER, since: days(10) }, 100);
    expect(await store.ledger.event(published[0]!.id)).toBeUndefined();
    expect(await store.ledger.event(published[1]!.id)).toBeDefined();

    await store.ledger.trim({ ...FOREVER, since: days(60) }, 100);
    await store.ledger.trim({ ...FOREVER, since: days(60) }, 100);
    expect(await ids({ order: 'asc', limit: 100 })).toEqual([published[3]!.id]);
    expect(await store.snapshots.get(2)).toBeUndefined();
    expect(await store.snapshots.get(4)).toBeDefined();
  });

  test('publishes a snapshot once, with its event, and takes fuller origins later', async () => {
    expect(await store.snapshots.last()).toBeUndefined();
    const [one, two] = [event(), event()];
    await store.snapshots.publish(snapshot(1, one, { gateway: { workers: 2 } }), one);
    await expect(store.snapshots.publish(snapshot(1, two), two)).rejects.toMatchObject({
      trouble: 'conflict',
    });
    expect(await ids({ order: 'asc', limit: 100 })).toEqual([one.id]);
    await store.snapshots.publish(snapshot(2, two, { gateway: { workers: 2 } }), two);
    expect(await store.snapshots.get(1)).toEqual(snapshot(1, one, { gateway: { workers: 2 } }));

    const origins = { 'routes.chat.deadline': { file: 'armature.yaml', line: 3, author: 'Ada' } };
    await store.snapshots.explain(2, origins);
    expect((await store.snapshots.last())?.origins).toEqual(origins);
  });

  test('keeps keys, revoked ones too, each change with its event', async () => {
    const [made, madeToo, revoked] = [event(), event(), event({ atMs: EPOCH_MS + 5 })];
    await store.keys.create(key('key_1'), made);
    await store.keys.create(key('key_2'), madeToo);
    await expect(store.keys.create(key('key_1'), event())).rejects.toMatchObject({ trouble: 'conflict' });
    await expect(
      store.keys.create({ ...key('key_3'), hash: key('key_1').hash }, event()),
    ).rejects.toMatchObject({ trouble: 'conflict' });
    expect(await store.keys.revoke('key_1', revoked)).toBe(true);
    expect(await store.keys.revoke('key_1', event())).toBe(false);
    expect(await store.keys.revoke('key_9', event())).toBe(false);
    expect(await store.keys.list()).toEqual([{ ...key('key_1'), revokedAt: revoked.at }, key('key_2')]);
    expect(await store.keys.get('key_2')).toEqual(key('key_2'));
    expect(await ids({ order: 'asc', limit: 100 })).toEqual([made.id, madeToo.id, revoked.id]);
  });

  test('changes overlays together, with one event', async () => {
    const at = new Date(EPOCH_MS).toISOString();
    const overlay = (path: string, value: unknown) => ({
      path,
      value,
      actor: 'operator',
      at,
      event: 'evt_1',
    });
    await store.overlays.change([overlay('b', 1), overlay('a', { deep: [1] })], [], event());
    await store.overlays.change([overlay('b', 2)], ['a', 'absent'], event());
    expect(await store.overlays.list()).toEqual([overlay('b', 2)]);
    expect(await ids({ order: 'asc', limit: 100 })).toHaveLength(2);
  });

  test('says so when it is closed', async () => {
    await store.close();
    await expect(store.ledger.append([event()])).rejects.toMatchObject({ trouble: 'closed' });
  });
});
