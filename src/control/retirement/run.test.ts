import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { LedgerService } from '../../events/ledger.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { RETIREMENT_KIND, type RetirementDocument } from '../../releases/retirement/contracts.ts';
import { memoryStore } from '../../store/memory/index.ts';
import type { GatewayPeer } from '../gateways.ts';
import { type RetirementControl, RetirementRun, TOLD_MS } from './run.ts';

const WATCH_MS = 60_000;

const backend = { engine: 'openai', model: 'm', endpoints: ['http://x:1/v1'] };
const settings = settingsSchema.parse({
  gateway: { workers: 2 },
  backends: { old: backend, new: backend },
  routes: { chat: { targets: [{ backend: 'old', weight: 0 }, { backend: 'new' }] } },
});

let folder: string;
let time: VirtualTime;
let ledger: LedgerService;
let run: RetirementRun;
let revision: number;
/** Numbers of the workers that are connected, and of those that are too busy to answer. */
let connected: number[];
let busy: number[];

/** Two workers that have the present snapshot, with nothing in flight. */
const control: RetirementControl = {
  effective: { settings, shown: {} },
  snapshots: { current: { number: 7 } },
  gateways: {
    get peers() {
      return connected.map((worker) => ({ worker }) as GatewayPeer);
    },
    ask: async ({ worker }) => (busy.includes(worker) ? undefined : { worker, snapshot: 7, endpoints: [] }),
  },
  change: async () => ({ event: 'ev_change' }),
};

/** A control that goes on with it as it was kept. */
function goOn(body: RetirementDocument): RetirementRun {
  const log = pino({ level: 'silent' });
  const last = async () => ({ keys: [], archived: false });
  const timing = { clock: time, timers: time };
  const options = { ledger, log, ...timing, data: folder, usersOf: async () => [], last };
  const next = new RetirementRun('ret_1', body, revision, options);
  next.begin(control);
  return next;
}

async function kept(): Promise<RetirementDocument> {
  const found = await ledger.store.documents.get(RETIREMENT_KIND, 'ret_1');
  revision = found!.revision;
  return found!.body as RetirementDocument;
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'retirement-'));
  time = new VirtualTime();
  const log = pino({ level: 'silent' });
  ledger = new LedgerService({
    store: memoryStore(),
    log,
    clock: time,
    timers: time,
    random: seededRandom(1),
  });
  [connected, busy] = [[0, 1], []];
  const started = ledger.event({ type: 'retirement-started', subject: 'retirement:ret_1', data: {} });
  const body: RetirementDocument = {
    subject: { kind: 'backend', name: 'old' },
    state: 'watching',
    startedBy: 'me',
    startedAt: started.at,
    watchMs: WATCH_MS,
    drainedMs: time.wall(),
    quietSinceMs: time.wall(),
    position: 0,
    plan: {
      subject: { kind: 'backend', name: 'old' },
      callers: [],
      looked: { since: started.at, events: 0, complete: true },
      references: [],
      drains: { chat: [{ backend: 'old', weight: 1 }] },
      keys: [],
      steps: [],
      blockers: [],
    },
    calls: 0,
    newest: started.id,
  };
  await ledger.store.documents.change([{ kind: RETIREMENT_KIND, id: 'ret_1', body, on: 0 }], [started]);
  revision = 1;
  run = goOn(body);
});

afterEach(async () => {
  await run.close();
  rmSync(folder, { recursive: true });
});

/** A worker tells of a request that it sent to the backend. */
function called(): void {
  const at = new Date(time.wall()).toISOString();
  const data = { tenant: 'somebody', route: 'chat', backend: 'old', wallMs: time.wall() };
  const event = {
    id: 'rq_1',
    at,
    type: 'request-answered',
    subject: 'request:rq_1',
    actor: '',
    causes: [],
    data,
  };
  void ledger.storeFacts('boot-1', 1, [{ kind: 'event', event }]);
}

test('with every worker heard it is proven after the time that was asked', async () => {
  await time.advance(WATCH_MS - 2_000);
  expect([run.body.state, run.stuck]).toEqual(['watching', undefined]);
  await time.advance(4_000);
  expect(run.body.state).toBe('proven');
});

test('a worker that is cut off keeps it from being proven, says so, and begins the time anew when it is back', async () => {
  connected = [0];
  await time.advance(10 * WATCH_MS);
  expect(run.body.state).toBe('watching');
  expect(run.stuck).toContain('worker 1 is not connected to control, and may still send requests there');
  expect(run.stuck).toContain('lower gateway.workers');
  await expect(run.finish('me')).rejects.toThrow(/not proven yet.*worker 1 is not connected/);
  connected = [0, 1];
  await time.advance(WATCH_MS - 4_000);
  expect([run.body.state, run.stuck]).toEqual(['watching', undefined]);
  await time.advance(8_000);
  expect(run.body.state).toBe('proven');
});

test('a worker that is too busy to tell is waited for, and takes nothing of the time', async () => {
  busy = [1];
  await time.advance(2 * WATCH_MS);
  expect([run.body.state, run.stuck]).toEqual(['watching', 'worker 1 is too busy to tell what runs there']);
  busy = [];
  await time.advance(2_000);
  expect(run.body.state).toBe('proven');
});

test('the last step is not made while a worker is cut off, and what that tells when it is back counts', async () => {
  await time.advance(WATCH_MS + 4_000);
  expect(run.body.state).toBe('proven');
  connected = [0];
  await time.advance(2_000);
  expect([run.body.state, run.stuck?.includes('worker 1')]).toEqual(['proven', true]);
  const early = run.finish('me');
  early.catch(() => undefined);
  await time.advance(TOLD_MS);
  await expect(early).rejects.toThrow(/cannot be seen.*worker 1 is not connected/);

  connected = [0, 1];
  const late = run.finish('me');
  late.catch(() => undefined);
  // What it saw comes a moment after the worker itself.
  await time.advance(1_000);
  called();
  await time.advance(TOLD_MS);
  await expect(late).rejects.toThrow(/not proven yet.*'somebody' called it last/);
  expect(run.body).toMatchObject({ state: 'watching', calls: 1 });
});

test('a control that begins on one that is proven makes the last step once workers have told what they saw', async () => {
  await time.advance(WATCH_MS + 4_000);
  await run.close();
  connected = [];
  run = goOn(await kept());
  expect(run.body.state).toBe('proven');
  const finished = run.finish('me');
  await time.advance(1_000);
  connected = [0, 1];
  expect(run.body.state).toBe('proven');
  await time.advance(TOLD_MS);
  await finished;
  expect(run.body.state).toBe('finished');
  expect(time.pending).toBe(0);
});
