import { expect, test } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import type { LedgerEvent } from '../../events/contracts.ts';
import { eventMaker } from '../../events/event-maker.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { memoryStore } from '../../store/memory/index.ts';
import { type CreatedKey, liveKeys, TenantKeys } from './index.ts';
import { hashOf } from './key.ts';

const FILE_KEY = hashOf('made elsewhere');

const TENANTS = { web: { keys: [{ hash: FILE_KEY }] }, batch: {} };

function setUp(file: object = { tenants: TENANTS }) {
  const store = memoryStore();
  const clock = new VirtualTime();
  const random = seededRandom(1);
  const settings = settingsSchema.parse(file);
  const changes: LedgerEvent[] = [];
  const keys = new TenantKeys({
    keys: store.keys,
    event: eventMaker(clock, random),
    clock,
    random,
    tenants: () => settings.tenants,
    // What is told of is stored already.
    onChange: async (event) => void changes.push((await store.ledger.event(event.id))!.event),
  });
  return { store, keys, settings, changes };
}

test('creates a key that is shown once and kept as its hash', async () => {
  const { store, keys, settings, changes } = setUp();
  const created = (await keys.create('web', 'laptop', 'operator')) as CreatedKey;
  expect(created).toEqual({
    tenant: 'web',
    id: expect.stringMatching(/^key_[0-9a-z]{17}$/),
    key: expect.stringMatching(/^ak_[0-9A-Za-z]{43}$/),
  });
  expect(await liveKeys(store.keys, settings.tenants)).toEqual([
    { id: `file_${FILE_KEY.slice(7, 19)}`, tenant: 'web', hash: FILE_KEY },
    { id: created.id, tenant: 'web', hash: hashOf(created.key) },
  ]);
  expect(changes).toMatchObject([
    {
      type: 'key-created',
      subject: `key:${created.id}`,
      actor: 'operator',
      data: { tenant: 'web', name: 'laptop' },
    },
  ]);
  const everything = JSON.stringify([await store.keys.list(), await keys.list(), changes]);
  expect(everything).not.toContain(created.key);
  expect(JSON.stringify([await keys.list(), changes])).not.toContain(hashOf(created.key));
});

test('makes no two keys alike', async () => {
  const { keys } = setUp();
  const made = await Promise.all(Array.from({ length: 200 }, () => keys.create('web', '', 'operator')));
  expect(new Set(made.map((it) => (it as CreatedKey).key)).size).toBe(200);
  expect(new Set(made.map((it) => (it as CreatedKey).id)).size).toBe(200);
});

test('revokes a key, once', async () => {
  const { store, keys, settings, changes } = setUp();
  const { id } = (await keys.create('batch', '', 'operator')) as CreatedKey;
  expect(await keys.revoke(id, 'token:ann')).toMatchObject({
    id,
    tenant: 'batch',
    revokedAt: expect.any(String),
  });
  expect(await keys.revoke(id, 'token:ann')).toMatchObject({ id, revokedAt: expect.any(String) });
  expect(changes.map((it) => it.type)).toEqual(['key-created', 'key-revoked']);
  expect(changes[1]).toMatchObject({ actor: 'token:ann', subject: `key:${id}` });
  expect(await liveKeys(store.keys, settings.tenants)).toHaveLength(1);
});

test('refuses what cannot be', async () => {
  const { store, keys, settings } = setUp();
  expect(await keys.create('wep', '', 'operator')).toMatchObject({
    code: 'invalid_request',
    message: "there is no tenant 'wep'; did you mean 'web'?",
  });
  expect(await keys.create('constructor', '', 'operator')).toMatchObject({ code: 'invalid_request' });
  expect(await keys.create('web', 'x'.repeat(201), 'operator')).toMatchObject({ code: 'invalid_request' });
  expect(await keys.revoke('key_nothing', 'operator')).toMatchObject({ code: 'not_found' });
  const ofFile = (await liveKeys(store.keys, settings.tenants))[0]!;
  expect(await keys.revoke(ofFile.id, 'operator')).toMatchObject({ code: 'conflict' });
  expect(await store.keys.list()).toEqual([]);
  expect(await setUp({}).keys.create('web', '', 'operator')).toMatchObject({
    message: expect.stringContaining("add 'web' under tenants"),
  });
});

test('gives no key to a tenant that has left the configuration', async () => {
  const { store, keys } = setUp();
  await keys.create('web', '', 'operator');
  expect(await liveKeys(store.keys, {})).toEqual([]);
  expect(await liveKeys(store.keys, undefined)).toEqual([]);
});
