import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { LedgerService } from '../../events/ledger.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { Readings } from '../../links/messages.ts';
import type { Store } from '../../store/contracts.ts';
import { memoryStore } from '../../store/memory/index.ts';
import { Health } from './health.ts';

let time: VirtualTime;
let store: Store;
let told: Readings[];
let status: Record<string, number>;
let health: Health;

beforeEach(() => {
  time = new VirtualTime();
  store = memoryStore();
  told = [];
  status = {};
  const log = pino({ level: 'silent' });
  const timing = { clock: time, timers: time, random: seededRandom(1) };
  const ledger = new LedgerService({ store, log, ...timing });
  const probe = async ({ endpoint }: { endpoint: string }) => ({ status: status[endpoint] ?? 200 });
  health = new Health({ ...timing, probe, ledger, log, tell: (readings) => told.push(readings) });
});

function watch(every: Record<string, string>, probe: object = {}): void {
  const backends = Object.fromEntries(
    Object.entries(every).map(([name, pace]) => [
      name,
      { engine: 'vllm', model: 'm', endpoints: [`http://${name}`], probe: { every: pace, ...probe } },
    ]),
  );
  health.watch(settingsSchema.parse({ backends }));
}

const types = async () =>
  (await store.ledger.events({ order: 'asc', limit: 100 })).map(({ event }) => event.type);

test('workers are told nothing before as much is known as a control before may have known', async () => {
  status['http://a'] = 500;
  watch({ a: '1s', b: '4s' });
  await time.advance(4000);
  expect([health.known, told, health.readings]).toEqual([{ 'a|http://a': 'unwell' }, [], undefined]);
  await time.advance(6000);
  expect(told.at(-1)?.health).toEqual({ 'a|http://a': 'unwell', 'b|http://b': 'well' });
  expect(await types()).toEqual(['endpoint-unwell']);
});

test('that is waited for a quarter of a minute at most', async () => {
  status['http://a'] = 500;
  watch({ a: '1s', b: '60s' });
  await time.advance(14_000);
  expect(told).toEqual([]);
  await time.advance(1000);
  expect(told.map((readings) => readings.health)).toEqual([{ 'a|http://a': 'unwell' }]);
});

test('an unwell endpoint names the event that told of it, for as long as it is so', async () => {
  status['http://a'] = 500;
  watch({ a: '1s' });
  await time.advance(5000);
  const [event] = await store.ledger.events({ order: 'asc', limit: 1 });
  expect(told.at(-1)).toEqual({
    health: { 'a|http://a': 'unwell' },
    causes: { 'a|http://a': event?.event.id },
  });
  status['http://a'] = 200;
  await time.advance(5000);
  expect(told.at(-1)).toEqual({ health: { 'a|http://a': 'well' }, causes: {} });
  expect(await types()).toEqual(['endpoint-unwell', 'endpoint-well']);
});

test('an endpoint that is not asked any more is unwell no more', async () => {
  status['http://a'] = 500;
  watch({ a: '1s' });
  await time.advance(5000);
  watch({ a: '1s' }, { off: true });
  expect(told.at(-1)).toEqual({ health: {}, causes: {} });
});

test('one that does not let itself be asked holds nothing up, and is told once', async () => {
  status['http://a'] = 404;
  watch({ a: '1s', b: '1s' });
  await time.advance(20_000);
  expect(told.at(-1)?.health).toEqual({ 'b|http://b': 'well' });
  expect(await types()).toEqual(['probe-refused']);
  health.close();
  expect(time.pending).toBe(0);
});
