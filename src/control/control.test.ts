import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LedgerService } from '../events/ledger.ts';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { PartSpec } from '../links/messages.ts';
import type { Store } from '../store/contracts.ts';
import { memoryStore } from '../store/memory/index.ts';
import { readConfiguration } from './configuration.ts';
import { Control } from './control.ts';
import type { ProbeAnswer } from './probing/prober.ts';

let folder: string;
let time: VirtualTime;
let store: Store;
let answer: ProbeAnswer;
let control: Control;
let wanted: PartSpec[];

const FILE = `
backends: { far: { engine: vllm, model: m, endpoints: ["http://far/v1"], probe: { every: 1s } } }
routes: { chat: { targets: [{ backend: far }], deadline: 5s } }
`;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'control-'));
  mkdirSync(join(folder, 'run'));
  const file = join(folder, 'armature.yaml');
  writeFileSync(file, FILE);
  time = new VirtualTime();
  store = memoryStore();
  answer = { status: 200 };
  const log = pino({ level: 'silent' });
  const timing = { clock: time, timers: time, random: seededRandom(1) };
  const ledger = new LedgerService({ store, log, ...timing });
  const read = readConfiguration(file, []);
  if (!read.ok) throw new Error('the test has a bad file');
  const place = { data: folder, file };
  const openPage = () => ({ read: async () => ({ status: 404 }), close: () => undefined });
  const options = { place, ledger, log, probe: async () => answer, openPage, ...timing };
  control = await Control.start(options, read.effective);
  control.onWant = (parts) => {
    wanted = parts;
  };
});

afterEach(() => {
  control.close();
  rmSync(folder, { recursive: true });
});

const types = async () =>
  (await store.ledger.events({ order: 'asc', limit: 100 })).map(({ event }) => event.type);

test('a change that cannot be stored does not act, and one that is decided acts as soon as it can', async () => {
  const publish = store.snapshots.publish;
  const put = store.overlays.change;
  const change = () => control.change('{ routes: { chat: { deadline: 3s } } }', 'operator');
  const deadline = () => control.snapshots.current.settings.routes.chat?.deadline;

  store.overlays.change = () => Promise.reject(new Error('the disk is full'));
  await expect(change()).rejects.toThrow('full');
  expect(control.effective.settings.routes.chat?.deadline).toBe(5000);

  store.overlays.change = put;
  store.snapshots.publish = () => Promise.reject(new Error('the disk is full'));
  await expect(change()).rejects.toThrow('full');
  await time.advance(3000);
  expect(deadline()).toBe(5000);

  store.snapshots.publish = publish;
  await time.advance(1000);
  expect(deadline()).toBe(3000);
  const [published] = await store.ledger.events({ order: 'desc', type: 'snapshot-published', limit: 1 });
  const [changed] = await store.ledger.events({ order: 'desc', type: 'configuration-changed', limit: 1 });
  expect(published?.event.causes).toEqual([changed?.event.id]);
});

test('the supervisor is told of another number of workers', async () => {
  await control.change('{ gateway: { workers: 2 } }', 'operator');
  expect(wanted.map(({ part }) => part)).toEqual(['control', 'gateway-0', 'gateway-1']);
});

test('an endpoint that falls ill and recovers is told in the ledger; one that was well from the start is not', async () => {
  await time.advance(5000);
  expect(control.health.known).toEqual({ 'far|http://far/v1': 'well' });
  answer = { status: 503 };
  await time.advance(5000);
  answer = { status: 200 };
  await time.advance(5000);
  expect((await types()).filter((type) => type.startsWith('endpoint-'))).toEqual([
    'endpoint-unwell',
    'endpoint-well',
  ]);
});
