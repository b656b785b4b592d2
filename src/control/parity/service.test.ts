import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Settings, settingsSchema } from '../../config/schema/index.ts';
import { LedgerService } from '../../events/ledger.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { Snapshot } from '../../links/messages.ts';
import type { Certificate } from '../../releases/parity/contracts.ts';
import type { Store } from '../../store/contracts.ts';
import { memoryStore } from '../../store/memory/index.ts';
import type { ParityControl } from './contracts.ts';
import { Demands } from './demands.ts';
import { ParityService } from './service.ts';
import { paritySurface } from './surface.ts';

/** An engine that decides by the text, and tells its version. */
interface Engine {
  server: Server;
  url: string;
  version: string;
  fingerprint: string | undefined;
  flips: boolean;
  /** Cannot tell anything of itself now. */
  mute: boolean;
  asked: number;
  /** Happens as the ninth prompt comes, before it is answered. */
  inTheMiddle: (() => void) | undefined;
}

const DAY_MS = 86_400_000;
/** For what goes over sockets on a busy machine. */
const PATIENT = { timeout: 10_000 };
const GOLDEN = Array.from({ length: 200 }, (_, i) =>
  JSON.stringify({ kind: 'chat', request: { messages: [{ role: 'user', content: `t${i}` }] } }),
).join('\n');

let time: VirtualTime;
let store: Store;
let ledger: LedgerService;
let engines: Record<'a' | 'b' | 'c', Engine>;
let settings: Settings;
let service: ParityService;

beforeEach(async () => {
  time = new VirtualTime();
  store = memoryStore();
  engines = { a: await engine(), b: await engine(), c: await engine() };
  settings = settingsOf({});
  ledger = new LedgerService({ store, log: pino({ level: 'silent' }), ...timing() });
  service = await opened();
});

afterEach(async () => {
  await service.close();
  for (const { server } of Object.values(engines)) server.closeAllConnections();
  for (const { server } of Object.values(engines)) server.close();
});

const timing = () => ({ clock: time, timers: time, random: seededRandom(1) });

function settingsOf(more: object): Settings {
  const backend = (name: 'a' | 'b' | 'c', hardware: string) => ({
    engine: 'vllm',
    model: 'm',
    hardware,
    endpoints: [`${engines[name].url}/v1`],
  });
  return settingsSchema.parse({
    backends: { a: backend('a', 'h100'), b: backend('b', 'mi300x'), c: backend('c', 'h200') },
    ...more,
  });
}

async function opened(): Promise<ParityService> {
  const log = pino({ level: 'silent' });
  const opening = await ParityService.open({ ledger, log, ...timing() });
  opening.begin(control());
  return opening;
}

const control = (): ParityControl => ({
  get effective() {
    return { settings, config: { certificates: { 'golden.jsonl': sha256 } } };
  },
  snapshots: {
    get current() {
      const endpoints = Object.fromEntries(
        Object.entries(settings.backends).map(([name, of]) => [name, 'endpoints' in of ? of.endpoints : []]),
      );
      return { event: 'ev_snapshot', endpoints } as Snapshot;
    },
  },
  idle: { wake() {} },
  gateways: { peers: [], ask: async () => undefined },
});

let sha256 = '';

async function engine(): Promise<Engine> {
  const made = {
    version: '1.0',
    fingerprint: undefined,
    flips: false,
    mute: false,
    asked: 0,
  } as unknown as Engine;
  made.server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const answer = (value: object) =>
        response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
      if (request.method === 'GET' && made.mute) return response.writeHead(503).end();
      if (request.url === '/version') return answer({ version: made.version });
      if (request.method === 'GET') return response.writeHead(404).end();
      if (++made.asked === 9) made.inTheMiddle?.();
      const { content } = JSON.parse(Buffer.concat(chunks).toString()).messages[0];
      const told = made.fingerprint === undefined ? {} : { system_fingerprint: made.fingerprint };
      return answer({ ...told, choices: [{ message: { content: made.flips ? 'no' : content } }] });
    });
  });
  await new Promise<void>((resolve) => made.server.listen(0, '127.0.0.1', resolve));
  made.url = `http://127.0.0.1:${(made.server.address() as AddressInfo).port}`;
  return made;
}

/** What is asked of a comparison of `a` with another. */
function askedOf(backend: string, golden = { name: 'g', text: GOLDEN }) {
  return { reference: 'a', backend, golden, flipsMax: 0.03, alpha: 0.05, together: 8, ageMs: DAY_MS };
}

async function compared(backend: string, more: object = {}): Promise<Certificate> {
  const asked = askedOf(backend, { name: 'golden.jsonl', text: GOLDEN });
  const { id } = await service.start({ ...asked, ...more }, 'operator');
  await vi.waitFor(() => expect(service.certificates.get(id)?.state).toBe('ended'), PATIENT);
  const ended = service.certificates.get(id)!;
  sha256 = ended.golden.sha256;
  return ended;
}

const expired = (id: string) =>
  vi.waitFor(() => {
    const found = service.certificates.get(id)?.expired;
    expect(found).toBeDefined();
    return found!;
  }, PATIENT);

const types = async () =>
  (await store.ledger.events({ order: 'asc', limit: 100 })).map(({ event }) => event.type);

test('trap 48: a certificate is one of two backends, and says nothing of a third with the same model', async () => {
  const { id, golden, verdict } = await compared('b');
  expect(verdict).toBe('certified');
  const demand = { sha256: golden.sha256, flipsMax: 0.03 };
  expect(service.standing('a', 'b', demand)).toMatchObject({ valid: true, certificate: id });
  expect(service.standing('a', 'c', demand)).toEqual({ valid: false, why: 'none' });
  expect(service.standing('b', 'a', demand)).toEqual({ valid: false, why: 'none' });
  // Nor of other prompts, nor of a tighter bound.
  expect(service.standing('a', 'b', { ...demand, sha256: 'other' }).valid).toBe(false);
  expect(service.standing('a', 'b', { ...demand, flipsMax: 0.01 }).valid).toBe(false);
  expect(await types()).toEqual(['parity-started', 'parity-certified']);
});

test('a certificate ends when an endpoint tells of another engine, and a newer comparison takes its place', async () => {
  const { id, golden } = await compared('b');
  await time.advance(61_000);
  expect(service.certificates.get(id)?.expired).toBeUndefined();
  engines.b.version = '1.1';
  const looked = vi.waitFor(async () => {
    await time.advance(60_000);
    expect(service.certificates.get(id)?.expired).toBeDefined();
  }, PATIENT);
  await looked;
  const { cause, what } = await expired(id);
  expect([cause, what]).toEqual(['backend-changed', expect.stringContaining('"1.1"')]);
  const demand = { sha256: golden.sha256, flipsMax: 0.03 };
  expect(service.standing('a', 'b', demand)).toMatchObject({ valid: false, why: 'expired' });
  await compared('b');
  expect(service.standing('a', 'b', demand).valid).toBe(true);
});

test('a certificate ends with its age, with other settings of its backend, and with another system_fingerprint', async () => {
  engines.b.fingerprint = 'fp_1';
  const young = await compared('b', { ageMs: 90_000 });
  await vi.waitFor(async () => {
    await time.advance(60_000);
    expect(service.certificates.get(young.id)?.expired?.cause).toBe('too-old');
  }, PATIENT);
  const second = await compared('b');
  settings.backends['b']!.hardware = 'mi325x';
  service.settled();
  expect(await expired(second.id)).toMatchObject({
    cause: 'backend-changed',
    what: 'hardware was "mi300x" and is "mi325x"',
  });
  const third = await compared('b');
  await service.answeredAs('b', 'fp_1');
  expect(service.certificates.get(third.id)?.expired).toBeUndefined();
  await service.answeredAs('b', 'fp_2');
  expect(await expired(third.id)).toMatchObject({ cause: 'backend-changed' });
});

test('what changes in the middle of a comparison is not certified', async () => {
  engines.b.inTheMiddle = () => {
    engines.b.version = '2.0';
  };
  const { id } = await service.start(askedOf('b'), 'operator');
  await vi.waitFor(() => expect(service.certificates.get(id)?.state).toBe('ended'), PATIENT);
  expect(service.certificates.get(id)).toMatchObject({ verdict: 'undecided', reason: 'changed-meanwhile' });
});

test('settings that change in the middle of a comparison count, though the endpoint told nothing of itself at its beginning', async () => {
  engines.b.mute = true;
  engines.b.inTheMiddle = () => {
    settings.backends['b']!.hardware = 'mi325x';
  };
  const { id } = await service.start(askedOf('b'), 'operator');
  await vi.waitFor(() => expect(service.certificates.get(id)?.state).toBe('ended'), PATIENT);
  expect(service.certificates.get(id)).toMatchObject({ verdict: 'undecided', reason: 'changed-meanwhile' });
});

test('a comparison with a backend that is taken away ends', async () => {
  engines.b.inTheMiddle = () => {
    const { b: _taken, ...rest } = settings.backends;
    settings = { ...settings, backends: rest };
    service.settled();
  };
  const { id } = await service.start(askedOf('b'), 'operator');
  await vi.waitFor(() => expect(service.certificates.get(id)?.state).toBe('ended'), PATIENT);
  expect(service.certificates.get(id)?.verdict).toBe('undecided');
});

test('a comparison that is broken off takes nothing from the certificate before it', async () => {
  const { id, golden } = await compared('b');
  const demand = { sha256: golden.sha256, flipsMax: 0.03 };
  const cell = () => paritySurface(service).parityMatrix().cells[0];
  expect(cell()).toMatchObject({ certificate: id, standing: 'certified' });
  expect(cell()).not.toHaveProperty('newer');
  const again = await service.start(askedOf('b'), 'operator');
  expect(cell()).toMatchObject({
    certificate: id,
    standing: 'certified',
    newer: { certificate: again.id, state: 'running' },
  });
  service.stop(again.id);
  await vi.waitFor(
    () => expect(service.certificates.get(again.id)).toMatchObject({ reason: 'run-stopped' }),
    PATIENT,
  );
  expect(service.standing('a', 'b', demand)).toMatchObject({ valid: true, certificate: id });
  expect(cell()).toMatchObject({
    certificate: id,
    standing: 'certified',
    newer: { certificate: again.id, state: 'ended', reason: 'run-stopped' },
  });
  engines.b.flips = true;
  expect((await compared('b')).verdict).toBe('rejected');
  expect(cell()).toMatchObject({ standing: 'rejected' });
  expect(cell()).not.toHaveProperty('newer');
  expect(service.standing('a', 'b', demand)).toMatchObject({ valid: false, why: 'rejected' });
});

test('a control that begins anew has every certificate, and tells what it was measuring as interrupted', async () => {
  const { id } = await compared('b');
  engines.c.flips = true;
  const running = await service.start(askedOf('c'), 'operator');
  await service.close();
  service = await opened();
  expect(service.certificates.get(id)).toMatchObject({ verdict: 'certified' });
  await vi.waitFor(
    () =>
      expect(service.certificates.get(running.id)).toMatchObject({
        state: 'ended',
        reason: 'run-interrupted',
      }),
    PATIENT,
  );
});

test('a comparison that cannot be is refused with its reason', async () => {
  const asked = askedOf('b', { name: 'g.jsonl', text: 'no' });
  await expect(service.start(asked, 'x')).rejects.toThrow(/^g\.jsonl: line 1: /);
  await expect(service.start({ ...asked, backend: 'z' }, 'x')).rejects.toThrow("There is no backend 'z'.");
});

test('a backend does not get in by taking the place of the reference', async () => {
  const demands = new Demands({ ledger, log: pino({ level: 'silent' }), parity: service });
  const routed = (targets: object[], more: object = {}) =>
    settingsOf({ routes: { chat: { targets, parity: { golden: 'golden.jsonl', ...more } } } });
  const [a, b] = [{ backend: 'a' }, { backend: 'b' }];
  const objections = (before: Settings, after: Settings) =>
    demands
      .objections(before, { settings: after, config: { certificates: { 'golden.jsonl': sha256 } } }, 'f')
      .map(({ path, message }) => `${path}: ${message}`);
  const refused =
    'routes.chat.targets[0]: "b" has no valid certificate of parity with "a": it was not compared yet';
  expect(objections(routed([a]), routed([b]))).toEqual([refused]);
  expect(objections(routed([a]), routed([b, a]))).toEqual([refused]);
  expect(objections(routed([{ ...b, weight: 0 }, a]), routed([b]))).toEqual([refused]);
  // What answered before stays, a route that is new has its first target, and whoever names a reference means it.
  expect(objections(routed([a, b]), routed([b]))).toEqual([]);
  expect(objections(settingsOf({}), routed([b]))).toEqual([]);
  expect(objections(routed([a]), routed([b], { reference: 'b' }))).toEqual([]);
  await compared('b');
  expect(objections(routed([a]), routed([b]))).toEqual([]);
});

test('a release to a backend passes the gate of parity with a certificate, and otherwise where the route only flags', async () => {
  const demands = new Demands({ ledger, log: pino({ level: 'silent' }), parity: service });
  const gate = demands.gate(control);
  const route = (require: string) =>
    settingsOf({
      routes: { chat: { targets: [{ backend: 'a' }], parity: { golden: 'golden.jsonl', require } } },
    });
  const asked = { release: 'rel_1', route: 'chat', backend: 'b' };
  const never = new AbortController().signal;
  settings = route('refuse');
  expect(gate.applies(asked)).toBe(true);
  expect(await gate.pass(asked, never)).toMatchObject({ passed: false, reason: { code: 'parity-missing' } });
  settings = route('flag');
  expect((await gate.pass(asked, never)).passed).toBe(true);
  settings = route('refuse');
  const { event } = await compared('b');
  const passed = await gate.pass(asked, never);
  expect(passed).toMatchObject({ passed: true, reason: { code: 'parity-shown' } });
  expect((await store.ledger.event(passed.event))?.event.causes).toEqual([event]);
  settings = settingsOf({ routes: { chat: { targets: [{ backend: 'a' }] } } });
  expect(gate.applies(asked)).toBe(false);
});
