import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { LedgerService } from '../../events/ledger.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { GaugeReading } from '../../links/messages.ts';
import type { Store } from '../../store/contracts.ts';
import { memoryStore } from '../../store/memory/index.ts';
import { EngineGauges } from './engine-gauges.ts';
import type { PageAnswer } from './scraper.ts';

const PAGE = 'vllm:num_requests_waiting 3\nvllm:num_requests_running 5\n';
const KEY = 'a|http://a:8000/v1';

let time: VirtualTime;
let store: Store;
let told: Record<string, GaugeReading>[];
let answers: Record<string, PageAnswer>;
/** Milliseconds that each page takes. */
let takesMs: number;
let reads: { host: string; atMs: number }[];
let reading: Record<string, number>;
let open: number;
let gauges: EngineGauges;

beforeEach(() => {
  time = new VirtualTime();
  store = memoryStore();
  told = [];
  answers = { a: { page: PAGE }, b: { page: PAGE } };
  takesMs = 5;
  reads = [];
  reading = {};
  open = 0;
  const log = pino({ level: 'silent' });
  const timing = { clock: time, timers: time, random: seededRandom(1) };
  gauges = new EngineGauges({
    ...timing,
    ledger: new LedgerService({ store, log, ...timing }),
    log,
    tell: (news) => told.push(news),
    open: ({ url }) => {
      const host = new URL(url).hostname;
      open++;
      return {
        read: async (withinMs) => {
          reads.push({ host, atMs: time.mono() });
          reading[host] = (reading[host] ?? 0) + 1;
          expect(reading[host]).toBe(1);
          const late = takesMs > withinMs;
          await new Promise<void>((resolve) => time.set(Math.min(takesMs, withinMs), resolve));
          reading[host]--;
          return late ? { fault: 'late' } : (answers[host] ?? { status: 404 });
        },
        close: () => void open--,
      };
    },
  });
});

afterEach(() => {
  gauges.close();
  expect([open, time.pending]).toEqual([0, 0]);
});

function watch(more: object = {}, names = ['a']): void {
  const backends = Object.fromEntries(
    names.map((name) => [
      name,
      { engine: 'vllm', model: 'm', endpoints: [`http://${name}:8000/v1`], ...more },
    ]),
  );
  const endpoints = Object.fromEntries(names.map((name) => [name, [`http://${name}:8000/v1`]]));
  gauges.watch(settingsSchema.parse({ backends }), endpoints);
}

const written = { gauges: 'http://a:8000/metrics' };
const events = async () =>
  (await store.ledger.events({ order: 'asc', limit: 100 })).map(({ event }) => [event.type, event.data]);

describe('the pace', () => {
  it('is about one a second, never two at once, and slower for an engine that takes long', async () => {
    watch();
    await time.advance(100_000);
    expect(reads.length).toBeGreaterThan(90);
    expect(reads.length).toBeLessThan(115);
    const gaps = reads.slice(1).map(({ atMs }, at) => atMs - reads[at]!.atMs);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(800);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1210);
    takesMs = 900;
    await time.advance(5000);
    reads = [];
    await time.advance(27_000);
    expect(reads.length).toBeLessThan(12);
    expect(gauges.known[KEY]).toMatchObject({ waiting: 3, stale: false });
    expect(await events()).toEqual([]);
  });

  it('slackens where an engine has no such page, without a word, until it has one', async () => {
    answers = {};
    watch();
    await time.advance(600_000);
    expect(reads.length).toBeLessThan(25);
    expect([gauges.known, told, await events()]).toEqual([{}, [], []]);
    answers = { a: { page: PAGE } };
    await time.advance(75_000);
    reads = [];
    await time.advance(10_000);
    expect(reads.length).toBeGreaterThan(7);
    expect(gauges.known[KEY]).toMatchObject({ waiting: 3, running: 5, stale: false });
  });
});

describe('what is read', () => {
  it('is told to the workers together, soon, and to one that joins at once', async () => {
    watch({}, ['a', 'b']);
    await time.advance(500);
    expect(told.length).toBeLessThanOrEqual(2);
    expect(Object.assign({}, ...told)).toEqual({
      [KEY]: { waiting: 3, running: 5, ageMs: expect.any(Number) },
      'b|http://b:8000/v1': { waiting: 3, running: 5, ageMs: expect.any(Number) },
    });
    expect(Object.keys(gauges.fresh)).toEqual([KEY, 'b|http://b:8000/v1']);
    answers = {};
    await time.advance(7000);
    expect(gauges.fresh).toEqual({});
    expect(gauges.known[KEY]).toMatchObject({ waiting: 3, stale: true });
  });

  it('is shared out where it is of several endpoints', async () => {
    const endpoints = ['http://a:8000/v1', 'http://b:8000/v1'];
    const of = { engine: 'vllm', model: 'm', endpoints, gauges: 'http://a:9090/metrics' };
    gauges.watch(settingsSchema.parse({ backends: { x: of } }), { x: endpoints });
    await time.advance(500);
    expect(told).toEqual([
      Object.fromEntries(endpoints.map((url) => [`x|${url}`, { waiting: 1.5, running: 2.5, ageMs: 100 }])),
    ]);
    expect(reads).toHaveLength(1);
  });

  it('is forgotten with its endpoint', async () => {
    watch({}, ['a', 'b']);
    await time.advance(1000);
    watch({}, ['b']);
    expect(Object.keys(gauges.known)).toEqual(['b|http://b:8000/v1']);
    expect(open).toBe(1);
  });
});

describe('what cannot be read', () => {
  it.each([
    ['a page that is not there', { status: 404 }, { status: 404 }],
    ['a page of something else', { page: '<html>' }, { fault: 'none of its load gauges is on the page' }],
    ['an engine that is not there', { fault: 'ECONNREFUSED' }, { fault: 'ECONNREFUSED' }],
  ])('%s is told once, where it was written, and when it comes back', async (_what, answer, figures) => {
    answers = { a: answer };
    watch(written);
    await time.advance(60_000);
    const unread = ['gauges-unread', { url: written.gauges, ageMs: expect.any(Number), ...figures }];
    expect(await events()).toEqual([unread]);
    answers = { a: { page: PAGE } };
    await time.advance(2000);
    expect(await events()).toEqual([unread, ['gauges-read', { waiting: 3, running: 5 }]]);
    answers = { a: answer };
    await time.advance(60_000);
    expect(await events()).toHaveLength(2);
    await time.advance(300_000);
    expect(await events()).toHaveLength(3);
  });

  it('is told of a usual page too, once it was there', async () => {
    watch();
    await time.advance(2000);
    takesMs = 60_000;
    await time.advance(20_000);
    expect((await events()).map(([type]) => type)).toEqual(['gauges-unread']);
    expect(gauges.known[KEY]?.stale).toBe(true);
  });

  it('is a reading or two that fail: no news, as long as it is fresh', async () => {
    watch(written);
    await time.advance(3000);
    answers = { a: { status: 500 } };
    await time.advance(3500);
    answers = { a: { page: PAGE } };
    await time.advance(10_000);
    expect(await events()).toEqual([]);
  });
});
