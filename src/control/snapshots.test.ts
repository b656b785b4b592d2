import { expect, test } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import { LedgerService } from '../events/ledger.ts';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Store } from '../store/contracts.ts';
import { memoryStore } from '../store/memory/index.ts';
import { type Ingredients, Snapshots } from './snapshots.ts';

const silent = { warn() {}, error() {} };
/** One for all that are opened: two of one seed would make the same ids. */
const random = seededRandom(1);

function ingredients(more: Partial<Ingredients> = {}): Ingredients {
  const settings = settingsSchema.parse({});
  const nothing = { keys: [], endpoints: {}, certificates: {}, shown: {}, origins: {}, hosts: [], idle: [] };
  return { settings, ...nothing, ...more };
}

async function opened(store: Store) {
  const time = new VirtualTime();
  const ledger = new LedgerService({
    store,
    clock: time,
    timers: time,
    random,
    log: silent,
  });
  return Snapshots.open(ledger);
}

test('numbers grow with each change, over restarts too, and stay where nothing changes', async () => {
  const store = memoryStore();
  const first = (await opened(store)).snapshots;
  expect(() => first.current).toThrow();
  expect(await first.publish(ingredients(), [])).toBe(true);
  expect(await first.publish(ingredients(), [])).toBe(false);
  const { number, event } = first.current;
  expect(number).toBe(1);

  const second = (await opened(store)).snapshots;
  expect(await second.publish(ingredients(), [])).toBe(true);
  expect(second.current).toMatchObject({ number: 1, event });
  expect(await second.publish(ingredients({ keys: [{ id: 'k', tenant: 't', hash: 'h' }] }), ['ev_1'])).toBe(
    true,
  );
  expect(second.current.number).toBe(2);

  const third = (await opened(store)).snapshots;
  expect(await third.publish(ingredients({ endpoints: { b: ['http://b'] } }), [])).toBe(true);
  expect(third.current.number).toBe(3);
  expect((await store.ledger.event(second.current.event))?.event.causes).toEqual(['ev_1']);
});

test('what cannot be stored does not act', async () => {
  const store = memoryStore();
  const { snapshots } = await opened(store);
  await snapshots.publish(ingredients(), []);
  const publish = store.snapshots.publish;
  store.snapshots.publish = () => Promise.reject(new Error('the disk is full'));
  const changed = ingredients({ endpoints: { b: ['http://b'] } });
  await expect(snapshots.publish(changed, [])).rejects.toThrow('full');
  expect(snapshots.current.number).toBe(1);
  store.snapshots.publish = publish;
  await snapshots.publish(changed, []);
  expect(snapshots.current.number).toBe(2);
});

test('the hosts of the last snapshot are known to the next control, and no secret is stored', async () => {
  const store = memoryStore();
  const { snapshots } = await opened(store);
  const settings = settingsSchema.parse({
    backends: { b: { engine: 'vllm', model: 'm', endpoints: ['http://b'], auth: { bearer: 'sesame' } } },
  });
  const hosts = [{ backend: 'near', pid: 7, address: 'http://near/v1' }];
  await snapshots.publish(
    ingredients({ settings, hosts, shown: { backends: { b: { auth: { bearer: '***' } } } } }),
    [],
  );
  expect((await opened(store)).hosts).toEqual(hosts);
  const stored = [await store.snapshots.last(), await store.ledger.events({ order: 'asc', limit: 10 })];
  expect(JSON.stringify(stored)).not.toContain('sesame');
  expect(JSON.stringify(snapshots.current)).toContain('sesame');
});
