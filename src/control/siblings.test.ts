import { pino } from 'pino';
import { expect, test } from 'vitest';
import { LedgerService } from '../events/ledger.ts';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { memoryStore } from '../store/memory/index.ts';
import { Siblings } from './siblings.ts';

const log = pino({ level: 'silent' });
const left = { type: 'part-left', pid: 7, signal: null, exitCode: null, restartInMs: 20 } as const;
const started = { type: 'part-started', pid: 8, adopted: false } as const;

function told() {
  const time = new VirtualTime();
  const store = memoryStore();
  const ledger = new LedgerService({ store, log, clock: time, timers: time, random: seededRandom(1) });
  const siblings = new Siblings(ledger, log);
  const events = async () => {
    await time.advance(0);
    return (await store.ledger.events({ order: 'asc', limit: 100 })).map(({ event }) => event);
  };
  return { siblings, events, wallMs: time.wall() };
}

test('deaths and departures of other parts are told apart', async () => {
  const { siblings, events, wallMs } = told();
  siblings.heard({ ...started, part: 'gateway-0', wallMs });
  siblings.heard({ ...left, part: 'gateway-0', wallMs, exitCode: 1 });
  siblings.heard({ ...left, part: 'host-near', wallMs });
  siblings.heard({ ...left, part: 'gateway-1', wallMs, exitCode: 0, restartInMs: null });
  siblings.heard({ ...left, part: 'gateway-2', wallMs, restartInMs: null });
  siblings.heard({ ...started, part: 'gateway-2', wallMs, adopted: true });
  expect((await events()).map(({ type, subject }) => `${type} ${subject}`)).toEqual([
    'part-started worker:0',
    'worker-died worker:0',
    'part-died part:host-near',
    'part-left worker:1',
    'part-left worker:2',
    'part-adopted worker:2',
  ]);
});

test('a start follows from the death before it, and each stands at the time when it happened', async () => {
  const { siblings, events, wallMs } = told();
  siblings.heard({ ...left, part: 'control', wallMs: wallMs - 5000 });
  siblings.heard({ ...started, part: 'control', wallMs: wallMs - 4000 });
  siblings.heard({ ...started, part: 'control', wallMs });
  const [died, start, other] = await events();
  expect(start!.causes).toEqual([died!.id]);
  expect(other!.causes).toEqual([]);
  expect(Date.parse(died!.at)).toBe(wallMs - 5000);
  expect(Date.parse(start!.at)).toBe(wallMs - 4000);
});
