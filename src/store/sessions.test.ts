import { beforeEach, describe, expect, it } from 'vitest';
import { sessionsInMemory } from './memory/sessions.ts';
import type { NewItem, SessionsStore, Turn, Writer } from './sessions.ts';

let store: SessionsStore;
let now: number;

beforeEach(() => {
  store = sessionsInMemory();
  now = 1_000;
});

const item = (id: string): NewItem => ({ id, body: JSON.stringify({ id }) });

function turn(id: string, more: Partial<Turn> = {}): Turn {
  return {
    tenant: 'web',
    id,
    session: id,
    conversation: false,
    parent: undefined,
    owner: undefined,
    atMs: now,
    nowMs: ++now,
    status: 'completed',
    answerer: { backend: 'b1', model: 'm' },
    request: `req_${id}`,
    body: JSON.stringify({ id }),
    input: [item(`${id}-in`)],
    output: [item(`${id}-out`)],
    ...more,
  };
}

const writer = (owner: string, more: Partial<Writer> = {}): Writer => ({
  owner,
  pid: process.pid,
  nowMs: now,
  untilMs: now + 1000,
  ...more,
});

const chain = async (id: string, tenant = 'web') => {
  const found = await store.chain({ tenant, id, bytesMax: 10_000 });
  return found && (found.trouble ?? found.bodies.map((body) => JSON.parse(body).id as string));
};

const line = (id: string) => store.takeLine({ tenant: 'web', id, bytesMax: 10_000, ...writer('a/1') });

describe('a tree', () => {
  it('gives each leaf its own turns', async () => {
    await store.keep(turn('r1'));
    await store.keep(turn('r2', { session: 'r1', parent: 'r1' }));
    await store.keep(turn('r3', { session: 'r1', parent: 'r1' }));
    await store.keep(turn('r4', { session: 'r1', parent: 'r3' }));
    expect(await chain('r2')).toEqual(['r1-in', 'r1-out', 'r2-in', 'r2-out']);
    expect(await chain('r4')).toEqual(['r1-in', 'r1-out', 'r3-in', 'r3-out', 'r4-in', 'r4-out']);
    expect(await chain('r4', 'else')).toBeUndefined();
    expect(await store.list({ limit: 10 })).toMatchObject([{ id: 'r1', turns: 4, conversation: false }]);
  });

  it('ends where a turn was removed, and is gone with the last', async () => {
    await store.keep(turn('r1'));
    await store.keep(turn('r2', { session: 'r1', parent: 'r1' }));
    expect(await store.removeResponse({ tenant: 'else', id: 'r1' })).toBe(false);
    expect(await store.removeResponse({ tenant: 'web', id: 'r1' })).toBe(true);
    expect(await store.removeResponse({ tenant: 'web', id: 'r1' })).toBe(false);
    expect(await chain('r2')).toBe('broken');
    expect(await store.keep(turn('r3', { session: 'r1', parent: 'r1' }))).toBe('lost');
    await store.removeResponse({ tenant: 'web', id: 'r2' });
    expect(await store.list({ limit: 10 })).toEqual([]);
  });

  it('does not go on from a failed turn, nor over more than is allowed', async () => {
    await store.keep(turn('r1', { status: 'failed' }));
    expect(await chain('r1')).toBe('failed');
    await store.keep(turn('r2'));
    expect(await store.chain({ tenant: 'web', id: 'r2', bytesMax: 10 })).toMatchObject({
      trouble: 'too-long',
    });
  });

  it('branches off a conversation, with what was said there before', async () => {
    await store.createConversation({
      tenant: 'web',
      id: 'c',
      nowMs: now,
      metadata: '{}',
      items: [item('c0')],
    });
    for (const id of ['r1', 'r2']) {
      await line('c');
      await store.keep(turn(id, { session: 'c', conversation: true, owner: 'a/1' }));
    }
    expect(await chain('r1')).toEqual(['c0', 'r1-in', 'r1-out']);
    await store.keep(turn('r3', { parent: 'r1' }));
    expect(await chain('r3')).toEqual(['c0', 'r1-in', 'r1-out', 'r3-in', 'r3-out']);
  });
});

describe('a conversation', () => {
  beforeEach(() =>
    store.createConversation({ tenant: 'web', id: 'c', nowMs: now, metadata: '{}', items: [] }),
  );

  it('has one writer, until it keeps its turn, gives the line back, its time is over or its process is gone', async () => {
    const take = async (owner: string, more: Partial<Writer> = {}) =>
      (await store.takeLine({ tenant: 'web', id: 'c', bytesMax: 1000, ...writer(owner, more) }))!.trouble;
    expect(await take('a/1')).toBeUndefined();
    expect(await take('a/2')).toBe('held');
    await store.releaseLine({ id: 'c', owner: 'a/2' });
    expect(await take('a/2')).toBe('held');
    await store.releaseLine({ id: 'c', owner: 'a/1' });
    expect(await take('a/2')).toBeUndefined();
    expect(await store.renewLine({ id: 'c', ...writer('a/2', { untilMs: now + 5000 }) })).toBe(true);
    expect(await take('a/3', { nowMs: now + 2000 })).toBe('held');
    expect(await take('a/3', { nowMs: now + 5000 })).toBeUndefined();
    expect(await store.keep(turn('r1', { session: 'c', conversation: true, owner: 'a/2' }))).toBe('lost');
    // The same process number in another boot: who held it is gone. So is one whose process there is none of.
    expect(await take('b/1')).toBeUndefined();
    await store.releaseLine({ id: 'c', owner: 'b/1' });
    expect(await take('x/1', { pid: 2 ** 22 + 1 })).toBeUndefined();
    expect(await take('b/2')).toBeUndefined();
    expect(await store.keep(turn('r2', { session: 'c', conversation: true, owner: 'b/2' }))).toBe('kept');
    expect(await take('b/3')).toBeUndefined();
  });

  it('is neither changed nor removed while it is written', async () => {
    await line('c');
    const other = writer('a/2');
    expect(await store.addItems({ tenant: 'web', id: 'c', items: [item('x')], itemsMax: 9, ...other })).toBe(
      'held',
    );
    expect(await store.removeConversation({ tenant: 'web', id: 'c', ...other })).toBe('held');
    await store.releaseLine({ id: 'c', owner: 'a/1' });
    expect(await store.addItems({ tenant: 'web', id: 'c', items: [item('x')], itemsMax: 9, ...other })).toBe(
      'added',
    );
    expect(await store.addItems({ tenant: 'web', id: 'c', items: [item('y')], itemsMax: 1, ...other })).toBe(
      'full',
    );
    expect(await store.removeItem({ tenant: 'web', id: 'c', item: 'x', ...other })).toBe('removed');
    expect(await store.removeItem({ tenant: 'web', id: 'c', item: 'x', ...other })).toBeUndefined();
    expect(await store.removeConversation({ tenant: 'web', id: 'c', ...other })).toBe('removed');
    expect(await line('c')).toBeUndefined();
  });

  it('is paged both ways', async () => {
    const items = Array.from({ length: 5 }, (_, n) => item(`i${n}`));
    await store.addItems({ tenant: 'web', id: 'c', items, itemsMax: 9, ...writer('a/1') });
    const page = async (order: 'asc' | 'desc', after?: string) => {
      const found = (await store.items({
        tenant: 'web',
        id: 'c',
        order,
        limit: 2,
        ...(after ? { after } : {}),
      }))!;
      return [found.bodies.map((body) => JSON.parse(body).id), found.more];
    };
    expect(await page('asc')).toEqual([['i0', 'i1'], true]);
    expect(await page('asc', 'i3')).toEqual([['i4'], false]);
    expect(await page('desc')).toEqual([['i4', 'i3'], true]);
    expect(await page('desc', 'i1')).toEqual([['i0'], false]);
    expect(await store.items({ tenant: 'web', id: 'c', order: 'asc', limit: 2, after: 'no' })).toMatchObject({
      afterUnknown: true,
    });
  });
});

describe('retention', () => {
  it('removes what was not continued for long, a few at a time', async () => {
    for (let n = 0; n < 5; n++) await store.keep(turn(`r${n}`));
    await store.keep(turn('late', { session: 'r0', parent: 'r0' }));
    const keep = { sinceMs: now, bytesMax: Number.MAX_SAFE_INTEGER, limit: 3 };
    expect(await store.sweep(keep)).toEqual({ removed: 3, more: true });
    expect(await store.sweep(keep)).toEqual({ removed: 1, more: false });
    expect((await store.list({ limit: 10 }))!.map(({ id }) => id)).toEqual(['r0']);
    expect(await chain('late')).toHaveLength(4);
  });

  it('removes the oldest beyond the size', async () => {
    const body = 'x'.repeat(100_000);
    for (let n = 0; n < 20; n++) await store.keep(turn(`r${n}`, { output: [{ id: `o${n}`, body }] }));
    for (let more = true; more; )
      more = (await store.sweep({ sinceMs: 0, bytesMax: 1_000_000, limit: 2 })).more;
    const left = (await store.list({ limit: 100 }))!.map(({ id }) => id);
    expect(left.length).toBeGreaterThan(4);
    expect(left.length).toBeLessThan(11);
    expect(left[0]).toBe('r19');
  });

  it('removes those of the tenant that has most', async () => {
    const body = 'x'.repeat(100_000);
    await store.keep(turn('small', { tenant: 'small' }));
    for (let n = 0; n < 20; n++) await store.keep(turn(`r${n}`, { output: [{ id: `o${n}`, body }] }));
    for (let more = true; more; )
      more = (await store.sweep({ sinceMs: 0, bytesMax: 500_000, limit: 1 })).more;
    expect((await store.list({ limit: 100 }))!.at(-1)).toMatchObject({ id: 'small' });
  });
});
