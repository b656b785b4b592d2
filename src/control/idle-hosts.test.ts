import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import { LedgerService } from '../events/ledger.ts';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { WorkerState } from '../links/messages.ts';
import type { Store } from '../store/contracts.ts';
import { memoryStore } from '../store/memory/index.ts';
import type { GatewayPeer } from './gateways.ts';
import { HostStandings } from './host-standings.ts';
import { IdleHosts } from './idle-hosts.ts';

const STOP_MS = 60_000;

let time: VirtualTime;
let store: Store;
let ledger: LedgerService;
let standings: HostStandings;
let workers: { snapshot: number; inflight: number; usedAt: number; silent?: boolean }[];
let serves: boolean;
let number: number;
let changes: string[];
let idleStop: string | undefined;
let needed: boolean;

beforeEach(() => {
  time = new VirtualTime();
  store = memoryStore();
  const log = pino({ level: 'silent' });
  ledger = new LedgerService({ store, log, clock: time, timers: time, random: seededRandom(1) });
  standings = new HostStandings(time);
  workers = [{ snapshot: 1, inflight: 0, usedAt: 0 }];
  serves = true;
  number = 1;
  changes = [];
  idleStop = '60s';
  needed = false;
});

const settings = () =>
  settingsSchema.parse({
    gateway: { workers: workers.length },
    backends: { near: { engine: 'sim', host: idleStop === undefined ? {} : { idleStop } } },
  });

function idleHosts(remembered: string[] = []): IdleHosts {
  const idle: IdleHosts = new IdleHosts(remembered, {
    clock: time,
    timers: time,
    ledger,
    log: pino({ level: 'silent' }),
    gateways: {
      get peers() {
        return workers.map((_, worker) => ({ worker }) as GatewayPeer);
      },
      ask: async ({ worker }) => {
        const { snapshot, inflight, usedAt, silent } = workers[worker]!;
        if (silent) return undefined;
        const hosts = [{ backend: 'near', inflight, idleMs: time.mono() - usedAt }];
        return { snapshot, hosts } as Partial<WorkerState>;
      },
    },
    standings,
    settings,
    snapshot: () => ({
      number,
      event: 'ev',
      settings: settings(),
      keys: [],
      endpoints: { near: idle.has('near') || !serves ? [] : ['http://near/v1'] },
    }),
    serves: () => serves,
    needed: () => needed,
    changed: (cause) => {
      changes.push(cause);
      number++;
    },
  });
  standings.serves('near', true, 'ev_ready');
  idle.watch(settings());
  return idle;
}

/** Workers have heard of the newest snapshot. */
const loaded = () => {
  for (const worker of workers) worker.snapshot = number;
};

const events = async () => {
  await time.advance(0);
  return (await store.ledger.events({ order: 'asc', limit: 100 })).map(({ event }) => event);
};

test('a host is stopped once nobody asked for it for so long: first the workers let go of it, then it ends', async () => {
  const idle = idleHosts();
  await time.advance(STOP_MS - 1);
  expect(idle.withheld).toEqual([]);
  await time.advance(1);
  expect([idle.withheld, idle.stopped]).toEqual([['near'], []]);
  await time.advance(5000);
  expect(idle.stopped).toEqual([]);
  loaded();
  await time.advance(1000);
  expect(idle.stopped).toEqual(['near']);
  const [stopped] = await events();
  expect(stopped).toMatchObject({
    type: 'host-idle-stopped',
    subject: 'backend:near',
    causes: ['ev_ready'],
    data: { idleMs: STOP_MS, idleStopMs: STOP_MS },
  });
  expect(changes).toEqual([stopped!.id, stopped!.id]);
});

test('a use counts on whichever worker it was, and so does a request that goes on', async () => {
  workers.push({ snapshot: 1, inflight: 0, usedAt: 0 });
  const idle = idleHosts();
  await time.advance(40_000);
  workers[1]!.usedAt = time.mono();
  await time.advance(59_000);
  expect(idle.withheld).toEqual([]);
  workers[0]!.inflight = 1;
  await time.advance(200_000);
  expect(idle.withheld).toEqual([]);
  workers[0]!.inflight = 0;
  workers[0]!.usedAt = time.mono();
  await time.advance(2 * STOP_MS);
  expect(idle.withheld).toEqual(['near']);
});

test('one that is needed runs on though nobody asks for it, until it is not needed any more', async () => {
  needed = true;
  const idle = idleHosts();
  await time.advance(10 * STOP_MS);
  expect(idle.withheld).toEqual([]);
  needed = false;
  await time.advance(STOP_MS);
  expect(idle.withheld).toEqual(['near']);
});

test('it runs on until what was sent has ended, however long that takes', async () => {
  const idle = idleHosts();
  await time.advance(STOP_MS);
  workers[0]!.inflight = 1; // it came in the moment before the worker heard
  loaded();
  await time.advance(600_000);
  expect(idle.stopped).toEqual([]);
  workers[0]!.inflight = 0;
  await time.advance(1000);
  expect(idle.stopped).toEqual(['near']);
});

test('a worker that does not answer, or is away, may still use it', async () => {
  workers[0]!.silent = true;
  const idle = idleHosts();
  await time.advance(3 * STOP_MS);
  expect(idle.withheld).toEqual([]);
  workers[0]!.silent = false;
  await time.advance(1000);
  expect(idle.withheld).toEqual(['near']);
});

test('a request that comes before it has been stopped lets it serve on', async () => {
  const idle = idleHosts();
  await time.advance(STOP_MS);
  idle.wake('near', 'req_1');
  expect([idle.withheld, standings.servingAt('near')]).toEqual([[], time.mono()]);
  loaded();
  await time.advance(1000);
  expect(idle.stopped).toEqual([]);
  workers[0]!.usedAt = time.mono();
  await time.advance(STOP_MS);
  expect(idle.withheld).toEqual(['near']);
});

test('one that was stopped is started by the first request that comes, and by no other', async () => {
  const idle = idleHosts();
  await time.advance(STOP_MS);
  loaded();
  await time.advance(100);
  changes = [];
  for (const request of ['req_1', 'req_2', 'req_3']) idle.wake('near', request);
  expect(idle.stopped).toEqual([]);
  const [stopped, woken, ...others] = await events();
  expect(others).toEqual([]);
  expect(woken).toMatchObject({
    type: 'host-woken',
    causes: ['req_1', stopped!.id],
    data: { request: 'req_1' },
  });
  expect(changes).toEqual([woken!.id]);
});

test('what an earlier control left idle is believed until the supervisor says what it runs', () => {
  const woken = idleHosts(['near']);
  expect([woken.withheld, woken.stopped]).toEqual([['near'], undefined]);
  woken.keptRunning(['control', 'host-near']);
  expect([woken.withheld, woken.stopped]).toEqual([[], []]);

  const idle = idleHosts(['near']);
  idle.keptRunning(['control']);
  expect(idle.stopped).toEqual(['near']);
  idle.supervisorUp();
  expect(idle.stopped).toBeUndefined();
});

test('a host that may run on again is wanted again', async () => {
  const idle = idleHosts();
  await time.advance(STOP_MS);
  loaded();
  await time.advance(100);
  idleStop = undefined;
  idle.watch(settings());
  expect([idle.withheld, idle.stopped]).toEqual([[], []]);
});

test('another time counts from the moment it is set', async () => {
  const idle = idleHosts();
  await time.advance(30_000);
  idleStop = '10s';
  idle.watch(settings());
  await time.advance(10_000);
  expect(idle.withheld).toEqual(['near']);
});

test('one that dies while it is emptied is not forgotten', async () => {
  const idle = idleHosts();
  await time.advance(STOP_MS);
  serves = false;
  idle.hostChanged('near');
  loaded();
  await time.advance(100);
  expect(idle.stopped).toEqual(['near']);
});
