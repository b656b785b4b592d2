import { beforeEach, expect, test } from 'vitest';
import { idMaker } from '../kernel/ids.ts';
import { seededRandom } from '../kernel/random.ts';
import type { Store } from '../store/contracts.ts';
import { memoryStore } from '../store/memory/index.ts';
import type { LedgerEvent, RequestRecord, Step } from './contracts.ts';
import { eventOf } from './facts.ts';
import { nothingKnown, type Why, why } from './why.ts';

/**
 * A bad quarter of an hour at 03:00: a configuration is published, an endpoint refuses connections until its breaker
 * opens, requests are degraded and refused, a worker dies, and a flood goes beyond the rate of full records.
 */

const NIGHT_MS = Date.UTC(2026, 0, 1, 3);
const makeEventId = idMaker('ev', seededRandom(1));
const makeRequestId = idMaker('req', seededRandom(2));

let store: Store;
const source = () => ({ store, find: async (id: string) => store.ledger.event(id) });

function event(afterMs: number, type: string, subject: string, over: Partial<LedgerEvent> = {}): LedgerEvent {
  const atMs = NIGHT_MS + afterMs;
  const id = makeEventId(atMs);
  return {
    id,
    at: new Date(atMs).toISOString(),
    type,
    subject,
    actor: 'armature',
    causes: [],
    data: {},
    ...over,
  };
}

function request(afterMs: number, over: Partial<RequestRecord>, steps: Step[] = []): RequestRecord {
  const wallMs = NIGHT_MS + afterMs;
  return {
    id: makeRequestId(wallMs),
    wallMs,
    tenant: 'web',
    route: 'chat',
    priority: 'interactive',
    call: 'chat',
    stream: true,
    outcome: 'failed',
    status: 502,
    durationMs: 40,
    attempts: 1,
    snapshot: 7,
    snapshotEvent: published.id,
    steps,
    ...over,
  };
}

const changed = event(-7_200_000, 'configuration-changed', 'configuration', {
  actor: 'operator',
  data: {
    changes: [{ path: 'routes.chat.deadline', before: '5s', after: '2s', file: 'armature.yaml', line: 14 }],
    restart: [],
  },
});
const published = event(-7_199_990, 'snapshot-published', 'snapshot:7', {
  causes: [changed.id],
  data: { number: 7, keys: 2 },
});
const ENDPOINT = 'llama|http://10.0.0.5:8000/v1';
const refused = (at: number): Step => ({
  at,
  what: 'attempt',
  code: 'connection-refused',
  figures: { backend: 'llama', endpoint: 'http://10.0.0.5:8000/v1', attempt: 1, tookMs: 1 },
});
const failures = [1000, 2000, 3000].map((afterMs) =>
  request(afterMs, { code: 'backend_unavailable', backend: 'llama' }, [
    { at: 0, what: 'admit', code: 'admitted', figures: { priority: 'interactive', deadlineMs: 2000 } },
    refused(12),
  ]),
);
const opened = event(3041, 'breaker-opened', `endpoint:${ENDPOINT}`, {
  causes: failures.map((it) => it.id),
  data: { inARow: 3, failures: 3, answers: 3, openings: 1 },
});
const degraded = request(
  5000,
  { outcome: 'degraded', status: 200, rung: 'llama-small', requestId: 'order-4711' },
  [
    {
      at: 0.1,
      what: 'admit',
      code: 'admitted',
      figures: { priority: 'interactive', deadlineMs: 2000 },
      setting: 'routes.chat.deadline',
    },
    {
      at: 0.2,
      what: 'plan',
      code: 'breaker-open',
      figures: { endpoint: ENDPOINT, forMs: 800 },
      causes: [opened.id],
    },
    {
      at: 0.3,
      what: 'plan',
      code: 'only-target',
      figures: { target: 'llama-small', targets: 1 },
      setting: 'routes.chat.targets',
    },
  ],
);
const died = event(60_000, 'worker-died', 'worker:1', { data: { signal: 'SIGKILL' } });

beforeEach(async () => {
  store = memoryStore();
  await store.ledger.append([changed]);
  await store.snapshots.publish(
    {
      number: 7,
      event: published.id,
      at: published.at,
      settings: {},
      origins: {
        'routes.chat': { file: 'armature.yaml', line: 10 },
        'routes.chat.deadline': {
          file: 'armature.yaml',
          line: 14,
          commit: 'abc1234',
          author: 'Ada',
          date: '2025-12-31',
        },
      },
    },
    published,
  );
  const records = [...failures, degraded].map((record) => eventOf({ kind: 'request', record }, makeEventId));
  await store.ledger.append([...records.slice(0, 3), opened, records[3]!, died]);
});

/** Newest first, and each cause after what names it. */
function checkOrder({ steps }: Why): void {
  for (let i = 1; i < steps.length; i++) expect(steps[i]!.at <= steps[i - 1]!.at).toBe(true);
  const placeOf = (id: string) =>
    steps.findIndex(({ figures }) => figures.event === id || figures.request === id);
  steps.forEach(({ causes }, place) => {
    for (const cause of causes) expect(placeOf(cause)).toBeGreaterThan(place);
  });
}

test('tells a degraded request back to the failures that opened the breaker, and to the line of the file', async () => {
  const found = (await why(source(), degraded.id))!;
  expect(found).toMatchObject({ id: degraded.id, subject: `request:${degraded.id}` });
  checkOrder(found);
  for (const step of found.steps) {
    expect(Object.keys(step)).toEqual(['at', 'what', 'code', 'reason', 'figures', 'origin', 'causes']);
    expect(step.reason).not.toMatch(/[{}[\]?]|undefined/);
  }
  expect(found.steps.map(({ what, code }) => `${what} ${code}`)).toEqual([
    'request request-degraded',
    'plan only-target',
    'plan breaker-open',
    'admit admitted',
    'endpoint breaker-opened',
    'request request-failed',
    'attempt connection-refused',
    'request request-failed',
    'attempt connection-refused',
    'request request-failed',
    'attempt connection-refused',
    'snapshot snapshot-published',
    'configuration configuration-changed',
    'configuration value-changed',
  ]);
  expect(found.steps[0]!.reason).toBe(
    'Answered in a rougher form, by the rung llama-small, with 200 after 40ms.',
  );
  expect(found.steps[2]).toMatchObject({ causes: [opened.id], origin: null });
  expect(found.steps[3]).toMatchObject({
    at: '2026-01-01T03:00:05.000Z',
    reason: 'Admitted as interactive, to be answered within 2s.',
    origin: {
      path: 'routes.chat.deadline',
      file: 'armature.yaml',
      line: 14,
      commit: 'abc1234',
      author: 'Ada',
    },
    causes: [published.id],
  });
  // What the file leaves to the default is told by what holds it.
  expect(found.steps[1]!.origin).toEqual({ path: 'routes.chat', file: 'armature.yaml', line: 10 });
});

test('tells a value that was changed live, and the change', async () => {
  const live = event(-60_000, 'configuration-changed', 'configuration', {
    actor: 'token:ann',
    data: { changes: [{ path: 'routes.chat.targets[0].weight', before: 95, after: 5 }] },
  });
  const next = event(-59_000, 'snapshot-published', 'snapshot:8', { causes: [live.id], data: { number: 8 } });
  await store.ledger.append([live]);
  await store.snapshots.publish(
    {
      number: 8,
      event: next.id,
      at: next.at,
      settings: {},
      origins: {
        'routes.chat.targets': { file: 'armature.yaml', line: 11 },
        'routes.chat.targets[0].weight': { actor: 'token:ann', date: live.at, event: live.id },
      },
    },
    next,
  );
  const record = request(0, { snapshot: 8, snapshotEvent: next.id }, [
    {
      at: 0,
      what: 'plan',
      code: 'target-by-weight',
      figures: { target: 'a', targets: 2 },
      setting: 'routes.chat.targets',
    },
  ]);
  await store.ledger.append([eventOf({ kind: 'request', record }, makeEventId)]);
  const found = (await why(source(), record.id))!;
  checkOrder(found);
  expect(found.steps[1]).toMatchObject({
    origin: { path: 'routes.chat.targets[0].weight', actor: 'token:ann' },
    causes: [live.id, next.id],
  });
  expect(found.steps.at(-1)?.reason).toBe('routes.chat.targets[0].weight was changed from 95 to 5.');
});

test("finds a request by the caller's id", async () => {
  expect(await why(source(), 'order-4711')).toMatchObject({
    id: 'order-4711',
    subject: `request:${degraded.id}`,
  });
});

test.each([
  ['an event', opened.id, `endpoint:${ENDPOINT}`, 'breaker-opened'],
  ["an endpoint's breaker", ENDPOINT, `endpoint:${ENDPOINT}`, 'breaker-opened'],
  ['a subject in full', `endpoint:${ENDPOINT}`, `endpoint:${ENDPOINT}`, 'breaker-opened'],
  ['a snapshot', 'snapshot:7', 'snapshot:7', 'snapshot-published'],
  ["a snapshot's number", '7', 'snapshot:7', 'snapshot-published'],
  ['a configuration change', changed.id, 'configuration', 'configuration-changed'],
  ["a worker's death", 'worker:1', 'worker:1', 'worker-died'],
])('tells of %s', async (_what, id, subject, code) => {
  const found = (await why(source(), id))!;
  expect(found).toMatchObject({ id, subject });
  expect(found.steps[0]!.code).toBe(code);
  checkOrder(found);
});

test('tells the groups of its second of a request without a record', async () => {
  const second = NIGHT_MS / 1000 + 900;
  const group = { kind: 'group' as const, second, route: 'chat', tenant: 'web', example: failures[0]!.id };
  await store.ledger.append(
    [
      { ...group, reason: 'refused:overloaded', count: 40 },
      { ...group, reason: 'refused:overloaded', count: 2 },
      { ...group, reason: 'ok', count: 100 },
    ].map((fact) => eventOf(fact, makeEventId)),
  );
  const id = makeRequestId(second * 1000 + 400);
  const found = (await why(source(), id))!;
  expect(found.subject).toBe(`request:${id}`);
  expect(found.steps[0]).toMatchObject({
    code: 'record-not-kept',
    figures: { request: id, second: '2026-01-01T03:15:00.000Z', kinds: 2, requests: 142 },
  });
  expect(found.steps.slice(1).map((step) => step.figures)).toMatchObject([
    { reason: 'refused:overloaded', count: 42 },
    { reason: 'ok', count: 100 },
  ]);
});

test('tells of the worker that died soon after a request without a trace', async () => {
  const found = (await why(source(), makeRequestId(NIGHT_MS + 59_000)))!;
  expect(found.steps.map((step) => step.code)).toEqual(['record-not-found', 'worker-died']);
});

test('says why nothing is known', async () => {
  const id = makeRequestId(NIGHT_MS + 3_600_000);
  expect(await why(source(), id)).toBeUndefined();
  expect(nothingKnown(id)).toContain('made at 2026-01-01T04:00:00.000Z');
  expect(await why(source(), 'no such thing')).toBeUndefined();
  expect(nothingKnown('no such thing')).toContain('only Armature');
});

test('says what is no longer in the ledger', async () => {
  const late = event(10, 'host-gone', 'backend:llama', { causes: [makeEventId(NIGHT_MS)] });
  await store.ledger.append([late]);
  const found = (await why(source(), late.id))!;
  expect(found.steps.map((step) => step.code)).toEqual(['host-gone', 'cause-not-kept']);
});

test('begins with a request that itself brought about what it met', async () => {
  const step: Step = { at: 20, what: 'plan', code: 'no-endpoint', figures: {} };
  const cooled = event(21, 'endpoint-cooled', 'endpoint:b1');
  const met = request(0, {}, [{ ...step, causes: [cooled.id] }]);
  await store.ledger.append([
    { ...cooled, causes: [met.id] },
    eventOf({ kind: 'request', record: met }, makeEventId),
  ]);
  const { steps } = (await why(source(), met.id))!;
  expect(steps.map(({ code }) => code).slice(0, 3)).toEqual([
    'request-failed',
    'no-endpoint',
    'endpoint-cooled',
  ]);
});

test('cuts a chain without end, and bears one that goes in a circle', async () => {
  const [a, b] = [event(0, 'host-gone', 'x'), event(0, 'host-gone', 'x')];
  await store.ledger.append([
    { ...a, causes: [b.id] },
    { ...b, causes: [a.id] },
  ]);
  expect((await why(source(), a.id))!.steps).toHaveLength(2);

  const many = Array.from({ length: 200 }, (_, n) => event(n, 'host-gone', 'z'));
  const whole = event(300, 'host-gone', 'w', { causes: many.map((it) => it.id) });
  await store.ledger.append([...many, whole]);
  const { steps } = (await why(source(), whole.id))!;
  expect(steps).toHaveLength(101);
  expect(steps.at(-1)).toMatchObject({ code: 'chain-cut', figures: { left: 101 } });
});
