import { afterEach, beforeEach, expect, test } from 'vitest';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { type Store, StoreError } from '../store/contracts.ts';
import { memoryStore } from '../store/memory/index.ts';
import type { Fact, LedgerEvent, RequestRecord } from './contracts.ts';
import { FOLLOWERS_MAX } from './follow.ts';
import { LedgerService } from './ledger.ts';
import { openEvents, requestRecord } from './reading.ts';

let time: VirtualTime;
let store: Store;
let ledger: LedgerService;
let told: string[];

beforeEach(() => {
  time = new VirtualTime();
  store = memoryStore();
  told = [];
  const tell = (_figures: object, words: string) => void told.push(words);
  ledger = new LedgerService({
    store,
    clock: time,
    timers: time,
    random: seededRandom(1),
    log: { warn: tell, error: tell },
  });
});
afterEach(() => ledger.close());

const noted = (n: number) => ({ type: 'worker-died', subject: 'worker:0', data: { n } });

async function read(events: AsyncIterable<LedgerEvent> | undefined): Promise<unknown[]> {
  const read: unknown[] = [];
  for await (const event of events!) read.push(event.data.n);
  return read;
}

/** Makes the store fail its next writes, as a full disk does. */
function breakStore(trouble: 'full' | 'gone' = 'full'): { mend: () => void; attempts: () => number } {
  const { append, storeBatches } = store.ledger;
  let attempts = 0;
  const fail = async () => {
    attempts++;
    throw new StoreError(trouble, 'database or disk is full');
  };
  Object.assign(store.ledger, { append: fail, storeBatches: fail });
  return {
    mend: () => void Object.assign(store.ledger, { append, storeBatches }),
    attempts: () => attempts,
  };
}

/** Sends a batch, and lets the moment pass in which others may join it. */
async function storeFacts(boot: string, sequence: number, facts: readonly Fact[]): Promise<void> {
  const stored = ledger.storeFacts(boot, sequence, facts);
  stored.catch(() => undefined);
  await time.advance(25);
  return stored;
}

const record = (id: string, over: Partial<RequestRecord> = {}): RequestRecord => ({
  id,
  wallMs: time.wall(),
  tenant: 'web',
  route: 'chat',
  priority: 'standard',
  call: 'chat',
  stream: false,
  outcome: 'refused',
  status: 503,
  durationMs: 5,
  attempts: 0,
  snapshot: 1,
  snapshotEvent: 'ev_snapshot',
  steps: [],
  ...over,
});

test('gives an event its id and time at once, and stores it', async () => {
  const event = ledger.append(noted(1));
  expect(event).toMatchObject({
    id: expect.stringMatching(/^ev_/),
    actor: 'armature',
    causes: [],
    data: { n: 1 },
  });
  await ledger.flushed();
  expect((await store.ledger.event(event.id))?.event).toEqual(event);
});

test('turns facts into events, once', async () => {
  const id = 'req_000000000abcd0001';
  const event = ledger.event(noted(3));
  const told = record(id, { requestId: 'mine' });
  const facts = [
    { kind: 'request' as const, record: told },
    { kind: 'group' as const, second: 7, route: 'chat', tenant: 'web', reason: 'ok', count: 4, example: id },
    { kind: 'event' as const, event },
  ];
  await storeFacts('boot', 1, facts);
  await storeFacts('boot', 1, facts);
  const events = await store.ledger.events({ order: 'asc', limit: 10 });
  expect(events.map((it) => it.event)).toMatchObject([
    { id, type: 'request-refused', subject: `request:${id}`, actor: 'tenant:web', causes: ['ev_snapshot'] },
    { type: 'requests-grouped', subject: 'route:chat', at: '1970-01-01T00:00:07.000Z', data: { count: 4 } },
    event,
  ]);
  expect(await requestRecord(ledger, id)).toEqual(told);
  expect(await requestRecord(ledger, 'mine')).toMatchObject({ id });
  expect(await requestRecord(ledger, 'unknown')).toBeUndefined();
});

test('keeps events while the store is in trouble, and says so', async () => {
  const broken = breakStore();
  ledger.append(noted(1));
  await ledger.flushed();
  expect(ledger.trouble?.trouble).toBe('full');
  expect(told).toEqual(['the ledger cannot be written: database or disk is full']);
  for (let n = 2; n <= 4; n++) ledger.append(noted(n));
  await ledger.flushed();
  expect(broken.attempts()).toBe(1);

  await time.advance(500);
  expect(broken.attempts()).toBe(2);
  broken.mend();
  await time.advance(1000);
  await ledger.flushed();
  expect(ledger.trouble).toBeUndefined();
  expect([ledger.waiting, ledger.lost]).toEqual([0, 0]);
  expect(told.at(-1)).toBe('the ledger is written again');
  expect(await read(await openEvents(ledger, {}))).toEqual([1, 2, 3, 4]);
});

test('leaves batches with their workers while the store is in trouble', async () => {
  const broken = breakStore();
  await expect(storeFacts('boot', 1, [])).rejects.toMatchObject({ trouble: 'full' });
  await expect(storeFacts('boot', 1, [])).rejects.toMatchObject({ trouble: 'full' });
  expect(broken.attempts()).toBe(1);
  broken.mend();
  await time.advance(500);
  await storeFacts('boot', 1, [{ kind: 'event', event: ledger.event(noted(1)) }]);
  expect(ledger.trouble).toBeUndefined();
  expect(await read(await openEvents(ledger, {}))).toEqual([1]);
});

const facts = (...events: LedgerEvent[]): Fact[] => events.map((event) => ({ kind: 'event', event }));

test('stores what comes within a moment in one transaction, at once where it is much', async () => {
  const groups: number[] = [];
  const { storeBatches } = store.ledger;
  store.ledger.storeBatches = (batches) => {
    groups.push(batches.length);
    return storeBatches.call(store.ledger, batches);
  };
  const stored: number[] = [];
  const send = (sequence: number, count: number) => {
    const events = Array.from({ length: count }, () => ledger.event(noted(sequence)));
    void ledger.storeFacts('boot', sequence, facts(...events)).then(() => stored.push(sequence));
  };
  send(1, 1);
  await time.advance(20);
  send(2, 1);
  send(3, 0);
  expect(groups).toEqual([]);
  await time.advance(5);
  expect([groups, stored]).toEqual([[3], [1, 2, 3]]);
  for (const sequence of [4, 5, 6]) send(sequence, 200);
  await time.advance(0);
  expect([groups, stored]).toEqual([
    [3, 3],
    [1, 2, 3, 4, 5, 6],
  ]);
  expect(time.pending).toBe(0);
});

test('what has come is read at once, although it is still being gathered', async () => {
  const id = 'req_000000000abcd0001';
  const request: Fact = { kind: 'request', record: record(id, { requestId: 'mine' }) };
  const stored = ledger.storeFacts('boot', 1, [request]);
  expect(await requestRecord(ledger, 'mine')).toMatchObject({ id });
  await stored;
  void ledger.storeFacts('boot', 2, facts(ledger.event(noted(2))));
  expect(await read(await openEvents(ledger, { type: 'worker-died' }))).toEqual([2]);
  void ledger.storeFacts('boot', 3, facts(ledger.event(noted(3))));
  await ledger.close();
  expect((await store.ledger.extent()).events).toBe(3);
});

test('a batch that cannot be stored takes none of those with it that came beside it', async () => {
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  const sent = [noted(1), { ...noted(2), data: circle }, noted(3)].map((draft, n) =>
    ledger.storeFacts('boot', n, facts(ledger.event(draft))),
  );
  await time.advance(25);
  await Promise.all(sent);
  expect(ledger.lost).toBe(1);
  expect(await read(await openEvents(ledger, { type: 'worker-died' }))).toEqual([1, 3]);
});

test('gives up what cannot be stored at all, and holds up nothing for it', async () => {
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  ledger.append({ ...noted(1), data: circle });
  await ledger.flushed();
  const timeless = { ...ledger.event(noted(2)), at: 'never' };
  await storeFacts('boot', 1, [{ kind: 'event', event: timeless }]);
  await storeFacts('boot', 1, [{ kind: 'event', event: timeless }]);
  await ledger.flushed();
  await storeFacts('boot', 2, [{ kind: 'event', event: ledger.event(noted(3)) }]);
  expect([ledger.trouble, ledger.waiting, ledger.lost]).toEqual([undefined, 0, 3]);
  expect(told).toEqual(new Array(3).fill('events that cannot be stored are lost'));
  const events = await store.ledger.events({ order: 'asc', limit: 10 });
  expect(events.map(({ event }) => [event.type, event.data.n ?? event.data.count])).toEqual([
    ['events-lost', 1],
    ['events-lost', 1],
    ['events-lost', 1],
    ['worker-died', 3],
  ]);
});

test('backs off up to half a minute', async () => {
  const broken = breakStore();
  ledger.append(noted(1));
  await time.advance(10 * 60_000);
  expect(broken.attempts()).toBeGreaterThan(20);
  expect(broken.attempts()).toBeLessThan(30);
  broken.mend();
});

test('counts what is lost when trouble lasts, and writes the count down afterwards', async () => {
  const broken = breakStore('gone');
  for (let n = 0; n < 10_005; n++) ledger.append(noted(n));
  expect([ledger.waiting, ledger.lost]).toEqual([10_000, 5]);
  await time.advance(0);
  broken.mend();
  await time.advance(500);
  await ledger.flushed();
  const [lost] = await store.ledger.events({ order: 'desc', limit: 1 });
  expect(lost?.event).toMatchObject({ type: 'events-lost', data: { count: 5 } });
});

test('stores what waits when it closes', async () => {
  const broken = breakStore();
  ledger.append(noted(1));
  await ledger.flushed();
  broken.mend();
  expect(await ledger.close()).toBe(0);
  expect((await store.ledger.events({ order: 'asc', limit: 10 })).length).toBe(1);
  ledger.append(noted(2));
  expect(ledger.lost).toBe(1);
});

test('lists events oldest first, from a place on, of a type, or the last', async () => {
  const events = Array.from({ length: 2500 }, (_, n) =>
    ledger.append({ ...noted(n), type: n % 1000 === 0 ? 'key-created' : 'worker-died' }),
  );
  await ledger.flushed();
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
  expect(await read(await openEvents(ledger, {}))).toEqual(numbers(0, 2500));
  expect(await read(await openEvents(ledger, { limit: 1001 }))).toEqual(numbers(0, 1001));
  expect(await read(await openEvents(ledger, { after: events[2400]!.id, limit: 3 }))).toEqual([
    2401, 2402, 2403,
  ]);
  expect(await read(await openEvents(ledger, { last: 2 }))).toEqual([2498, 2499]);
  expect(await read(await openEvents(ledger, { type: 'key-created' }))).toEqual([0, 1000, 2000]);
  expect(await read(await openEvents(ledger, { type: 'key-created', last: 2 }))).toEqual([1000, 2000]);
  expect(await openEvents(ledger, { after: 'nonsense' })).toBeUndefined();
});

test('follows what is stored, from a place on, until it is ended', async () => {
  const first = ledger.append(noted(0));
  for (let n = 1; n < 5; n++) ledger.append(noted(n));
  await ledger.flushed();
  const end = new AbortController();
  const seen: unknown[] = [];
  const follow = async (asked: object) => {
    const numbers: unknown[] = [];
    seen.push(numbers);
    for await (const event of (await openEvents(ledger, { ...asked, follow: true, signal: end.signal }))!) {
      numbers.push(event.data.n);
    }
  };
  const followers = [
    follow({ after: first.id }),
    follow({}),
    follow({ last: 1 }),
    follow({ type: 'key-created' }),
  ];
  await time.advance(0);
  for (let n = 5; n < 8; n++) {
    ledger.append(noted(n));
    await time.advance(100);
  }
  ledger.append({ ...noted(8), type: 'key-created' });
  await time.advance(100);
  end.abort();
  await Promise.all(followers);
  expect(seen).toEqual([[1, 2, 3, 4, 5, 6, 7, 8], [5, 6, 7, 8], [4, 5, 6, 7, 8], [8]]);
  expect(time.pending).toBe(0);
});

test('holds a slow follower at its place without keeping events for it', async () => {
  const end = new AbortController();
  const events = (await openEvents(ledger, { follow: true, signal: end.signal }))![Symbol.asyncIterator]();
  const next = events.next();
  await time.advance(0);
  for (let n = 0; n < 3000; n++) ledger.append(noted(n));
  await time.advance(100);
  expect((await next).value.data.n).toBe(0);
  for (let n = 1; n < 3000; n++) expect((await events.next()).value.data.n).toBe(n);
  end.abort();
  expect((await events.next()).done).toBe(true);
});

test('ends its followers when it closes, and has room for so many', async () => {
  const followers = Array.from({ length: FOLLOWERS_MAX }, async () =>
    read(await openEvents(ledger, { follow: true })),
  );
  await time.advance(0);
  expect(ledger.followable).toBe(false);
  await ledger.close();
  expect((await Promise.all(followers)).flat()).toEqual([]);
});

test('finds an event that is still on its way', async () => {
  const event = ledger.event(noted(1));
  const found = ledger.find(event.id, 500);
  await time.advance(300);
  await storeFacts('boot', 1, [{ kind: 'event', event }]);
  expect((await found)?.event).toEqual(event);

  const never = ledger.find('req_000000000abcd0009', 500);
  await time.advance(500);
  expect(await never).toBeUndefined();
  expect(await ledger.find("a caller's", 500)).toBeUndefined();
  expect(time.pending).toBe(0);
});

test('removes what is older than it is kept, in steps', async () => {
  for (let n = 0; n < 1000; n++) ledger.append(noted(n));
  await ledger.flushed();
  ledger.keep({ ageMs: 60_000, sizeBytes: 1e9 });
  await time.advance(30_000);
  expect((await store.ledger.extent()).events).toBe(1000);
  await time.advance(41_000);
  expect((await store.ledger.extent()).events).toBe(0);
});
