import { describe, expect, test } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import type { HostReading, WorkerState } from '../links/messages.ts';
import type { GatewayPeer } from './gateways.ts';
import { type Gathered, statusOf } from './status.ts';

const A = 'http://a/v1';
const written = {
  gateway: { workers: 3 },
  backends: {
    b1: { engine: 'vllm', model: 'm', endpoints: [A] },
    near: { engine: 'sim' },
  },
};
const settings = settingsSchema.parse({
  ...written,
  routes: { chat: { targets: [{ backend: 'b1' }], ladder: [{ backend: 'near' }, { answer: 'busy' }] } },
});

function worker(worker: number, state: Partial<WorkerState> | undefined): Gathered['workers'][number] {
  const peer: GatewayPeer = {
    part: `gateway-${worker}`,
    worker,
    pid: 100 + worker,
    boot: `${worker}`,
    send: () => true,
  };
  if (!state) return { peer, state: undefined };
  const idle = {
    worker,
    pid: peer.pid,
    snapshot: 4,
    draining: false,
    inflight: 0,
    factsWaiting: 0,
    routes: [],
    hosts: [],
    endpoints: [],
  };
  return { peer, state: { ...idle, ...state } };
}

function gathered(more: Partial<Gathered> = {}): Gathered {
  return {
    at: '2026-01-02T03:04:05.678Z',
    settings,
    snapshot: { number: 4, event: 'ev_1', at: '2026-01-02T03:04:05.678Z' },
    configuration: { file: '/a.yaml', overlays: [], notices: [], restart: [] },
    workers: [0, 1, 2].map((it) => worker(it, { routes: [{ route: 'chat', ready: true, waiting: 1 }] })),
    hosts: [{ backend: 'near', pid: 7, address: 'http://near/v1', note: '' }],
    standings: { near: { state: 'running' } },
    endpoints: { b1: [A], near: ['http://near/v1'] },
    health: {},
    rates: new Map(),
    gauges: {},
    releases: [],
    ledger: { events: 1, bytes: 2, trouble: undefined, lost: 0 },
    ...more,
  };
}

const seen = (state: WorkerState['endpoints'][number]['state'], more: object = {}): Partial<WorkerState> => ({
  routes: [{ route: 'chat', ready: true, waiting: 0 }],
  endpoints: [{ backend: 'b1', endpoint: A, inflight: 2, limit: 4, state, ...more }],
});

test('a host is idle, starts, or is down between two starts', () => {
  const near = (standing: HostReading, hosts: Gathered['hosts'] = []) => {
    const status = statusOf(gathered({ hosts, endpoints: { b1: [A] }, standings: { near: standing } }));
    const { host } = status.backends.find(({ backend }) => backend === 'near')!;
    return [host?.state, host?.startingMs, host?.expectedMs, status.trouble.map(({ what }) => what)];
  };
  const loads = [{ backend: 'near', pid: 7, address: '', note: 'half' }];
  expect(near({ state: 'idle', expectedMs: 900 })).toEqual(['idle', undefined, 900, []]);
  expect(near({ state: 'starting', startingMs: 5 })).toEqual(['starting', 5, undefined, ['host-starting']]);
  expect(near({ state: 'starting', startingMs: 80, expectedMs: 900 }, loads)).toEqual([
    'starting',
    80,
    900,
    ['host-starting'],
  ]);
  expect(near({ state: 'starting', startingMs: -2000 })).toEqual(['down', -2000, undefined, ['host-down']]);
});

test('all is well when every worker answers and every route is ready', () => {
  const status = statusOf(gathered());
  expect(status.trouble).toEqual([]);
  expect(status.routes).toEqual([
    {
      route: 'chat',
      ready: true,
      waiting: 3,
      targets: [{ backend: 'b1', weight: 1 }],
      ladder: ['near', 'answer'],
    },
  ]);
  expect(status.backends.map(({ backend, host }) => [backend, host?.state])).toEqual([
    ['b1', undefined],
    ['near', 'serving'],
  ]);
});

test('a retired route is told as such, and is no trouble', () => {
  const routes = {
    chat: { targets: [{ backend: 'b1' }] },
    old: { targets: [{ backend: 'b1' }], retired: true },
  };
  const status = statusOf(gathered({ settings: settingsSchema.parse({ ...written, routes }) }));
  expect(status.routes.map(({ route, ready, retired }) => [route, ready, retired])).toEqual([
    ['chat', true, undefined],
    ['old', false, true],
  ]);
  expect(status.trouble).toEqual([]);
});

test('a pipeline is ready where a worker says so', () => {
  const piped = settingsSchema.parse({
    backends: {},
    routes: {},
    pipelines: { search: { stages: { a: { route: 'chat', input: 'x' }, b: { first: ['a'] } } } },
  });
  const statusWhere = (ready: boolean) =>
    statusOf(
      gathered({
        settings: piped,
        workers: [worker(0, { routes: [{ route: 'search', ready, waiting: 0 }] })],
        hosts: [],
        standings: {},
        endpoints: {},
      }),
    );
  expect(statusWhere(true).pipelines).toEqual([{ pipeline: 'search', ready: true, stages: ['a', 'b'] }]);
  expect(statusWhere(true).trouble).toEqual([]);
  expect(statusWhere(false).trouble.map(({ what }) => what)).toEqual(['pipeline-not-ready']);
});

test('of what several workers and the probes say of an endpoint the worst is shown, and figures add up', () => {
  const workers = [
    worker(0, seen('well')),
    worker(1, seen('cooling', { forMs: 900 })),
    worker(2, seen('open', { forMs: 400 })),
  ];
  const endpoint = (health: Gathered['health']) =>
    statusOf(gathered({ workers, health })).backends[0]!.endpoints[0];
  expect(endpoint({})).toEqual({
    endpoint: A,
    state: 'open',
    probe: 'unknown',
    inflight: 6,
    limit: 12,
    forMs: 900,
  });
  expect(endpoint({ [`b1|${A}`]: 'unwell' })?.state).toBe('unwell');
  expect(endpoint({ [`b1|${A}`]: 'well' })?.state).toBe('open');
});

test('what is wrong is told in words, workers and routes first', () => {
  const { trouble, workers } = statusOf(
    gathered({
      workers: [
        worker(0, undefined),
        worker(2, { ...seen('unwell'), routes: [{ route: 'chat', ready: false, waiting: 0 }] }),
      ],
      hosts: [{ backend: 'near', pid: 7, address: '', note: 'fetching 40 %' }],
      endpoints: { b1: [A], near: [] },
      configuration: {
        file: '/a.yaml',
        overlays: [],
        notices: [],
        restart: [],
        refused: { at: '2026-01-02T03:04:05.678Z', event: 'ev_2', faults: ['one', 'two'] },
      },
      ledger: { events: 1, bytes: 2, trouble: 'disk is full', lost: 3 },
    }),
  );
  expect(workers.map(({ part, state }) => `${part} ${state}`)).toEqual([
    'gateway-0 silent',
    'gateway-1 down',
    'gateway-2 serving',
  ]);
  expect(trouble.map(({ what }) => what)).toEqual([
    'worker-silent',
    'worker-down',
    'route-not-ready',
    'endpoint-unwell',
    'host-starting',
    'ledger-trouble',
    'events-lost',
    'configuration-refused',
  ]);
  expect(trouble[4]?.message).toBe('The host of backend near does not serve yet: fetching 40 %.');
});

describe('what is left of limits', () => {
  const limits = { requests: '4/min', concurrency: 2, routes: { chat: { tokens: '600/min' } } };
  const limited = (workers: number) =>
    settingsSchema.parse({ gateway: { workers }, tenants: { web: { limits }, free: {} } });
  const keys = { requests: '|web|requests', tokens: '|web|chat|tokens', slots: '|web' };
  const state = (slots: number) => ({
    quotas: { rates: { [keys.requests]: 1.5 }, slots: { [keys.slots]: slots } },
  });
  const rates = new Map([
    [keys.requests, -2],
    [keys.tokens, 599.5],
  ]);

  test('several workers share rates through control, and slots are used in each', () => {
    const workers = [worker(0, state(1)), worker(1, state(0)), worker(2, undefined)];
    expect(statusOf(gathered({ settings: limited(3), workers, rates })).quotas).toEqual([
      { tenant: 'web', route: null, kind: 'requests', max: 4, left: -2, fullMs: 90_000 },
      { tenant: 'web', route: 'chat', kind: 'tokens', max: 600, left: 599, fullMs: 50 },
      { tenant: 'web', route: null, kind: 'concurrency', max: 2, left: 1 },
    ]);
  });

  test('a worker that is the only one knows its rates itself', () => {
    const { quotas } = statusOf(gathered({ settings: limited(1), workers: [worker(0, state(2))], rates }));
    expect(quotas.map(({ left }) => left)).toEqual([1, 599, 0]);
  });
});
