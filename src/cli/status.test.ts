import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import type { Status } from '../api/contracts.ts';
import { statusText } from './status.ts';

const well: Status = {
  at: '2026-01-02T03:04:05.678Z',
  trouble: [],
  snapshot: { number: 4, event: 'ev_1', at: '2026-01-02T03:04:05.678Z' },
  configuration: {
    file: '/etc/armature.yaml',
    gateway: 'http://127.0.0.1:7070',
    admin: 'http://127.0.0.1:7071',
    overlays: [],
    notices: [],
    restart: [],
  },
  workers: [
    { part: 'gateway-0', worker: 0, pid: 10, state: 'serving', snapshot: 4, inflight: 3, factsWaiting: 0 },
  ],
  routes: [
    { route: 'chat', ready: true, waiting: 2, targets: [{ backend: 'b1', weight: 1 }], ladder: ['answer'] },
  ],
  releases: [],
  pipelines: [{ pipeline: 'search', ready: true, stages: ['intent', 'answer'] }],
  backends: [
    {
      backend: 'b1',
      engine: 'vllm',
      model: 'm',
      hardware: 'nvidia-h100',
      endpoints: [{ endpoint: 'http://a/v1', state: 'well', probe: 'well', inflight: 3, limit: 8 }],
    },
  ],
  quotas: [],
  ledger: { events: 12, bytes: 2048, oldest: '2026-01-01T00:00:00.000Z' },
};

test('all is well', () => {
  expect(statusText(well, false)).toMatchInlineSnapshot(`
    "Armature at http://127.0.0.1:7070, snapshot 4: all well

    Routes
      ROUTE  STATE  WAITING  TARGETS  LADDER
      chat   ready        2  b1       answer

    Pipelines
      PIPELINE  STATE  STAGES
      search    ready  intent, answer

    Backends
      BACKEND  ENGINE  HARDWARE     ENDPOINT     STATE  IN FLIGHT  LIMIT
      b1       vllm    nvidia-h100  http://a/v1  well           3      8

    Workers
      WORKER     STATE    IN FLIGHT  FACTS WAITING  SNAPSHOT  PID
      gateway-0  serving          3              0         4   10

    configuration /etc/armature.yaml; ledger: 12 events since 2026-01-01T00:00:00.000Z, 2KiB"
  `);
});

test('what is wrong stands first, and what waits or has no effect is said', () => {
  const text = statusText(
    {
      ...well,
      trouble: [
        {
          what: 'endpoint-open',
          subject: 'endpoint:b1|http://a/v1',
          message: 'Endpoint http://a/v1 of b1 is open.',
        },
      ],
      backends: [
        {
          ...well.backends[0]!,
          endpoints: [
            { endpoint: 'http://a/v1', state: 'open', probe: 'well', inflight: 0, limit: 8, forMs: 4200 },
          ],
        },
        {
          ...well.backends[0]!,
          backend: 'near',
          endpoints: [],
          host: {
            backend: 'near',
            state: 'starting',
            note: 'fetching 40 %',
            startingMs: 2000,
            expectedMs: 9000,
          },
        },
      ],
      configuration: {
        ...well.configuration,
        overlays: [
          { path: 'routes.chat.deadline', value: '3s', actor: 'operator', at: '2026-01-01T00:00:00.000Z' },
        ],
        restart: ['gateway.listen'],
        notices: [{ path: 'routes.chat.shadow', place: 'a.yaml:1:2', message: 'has no effect yet' }],
      },
    },
    false,
  );
  const lines = text.split('\n').map((line) => line.trim());
  expect(lines.slice(0, 2)).toEqual([
    'Armature at http://127.0.0.1:7070, snapshot 4: 1 trouble',
    '! Endpoint http://a/v1 of b1 is open.',
  ]);
  expect(text).toContain('open for 4.2s');
  expect(text).toMatch(/near .* fetching 40 % +starting for 2s of 9s/);
  expect(text).toMatch(/routes\.chat\.deadline +"3s" +operator/);
  expect(text).toContain('Waits for a restart\n  gateway.listen');
  expect(text).toContain('routes.chat.shadow has no effect yet (a.yaml:1:2)');
});

test('what engines say of their own load has a column where one says something', () => {
  expect(statusText(well, false)).not.toContain('OWN LOAD');
  const endpoint = (address: string, engine?: object) =>
    ({
      endpoint: address,
      state: 'well',
      probe: 'well',
      inflight: 0,
      limit: 8,
      ...(engine && { engine }),
    }) as const;
  const endpoints = [
    endpoint('http://a/v1', { waiting: 1.25, running: 5, cacheUsed: 0.4, ageMs: 300, stale: false }),
    endpoint('http://b/v1', { waiting: 9, ageMs: 12_000, stale: true }),
    endpoint('http://c/v1'),
  ];
  const text = statusText({ ...well, backends: [{ ...well.backends[0]!, endpoints }] } as typeof well, false);
  expect(text).toContain('OWN LOAD');
  expect(text).toMatch(/http:\/\/a\/v1 .* 8 +1\.3 waiting, 5 running, cache 40%/);
  expect(text).toMatch(/http:\/\/b\/v1 .* 8 +unknown for 12s/);
  expect(text).toMatch(/http:\/\/c\/v1 .* 8 +-/);
});

test('colours change no column', () => {
  const coloured = statusText(well, true);
  expect(coloured).toContain('\u001b[32mwell\u001b[0m');
  expect(stripVTControlCharacters(coloured)).toBe(statusText(well, false));
});

test('what tenants may use is shown where they are limited', () => {
  const web = { tenant: 'web', max: 600 };
  const quotas: Status['quotas'] = [
    { ...web, route: 'chat', kind: 'tokens', left: 550, fullMs: 5000 },
    { ...web, route: null, kind: 'concurrency', left: 0 },
  ];
  const text = statusText({ ...well, quotas }, false);
  expect(text).toMatch(/TENANT +ROUTE +LIMIT +LEFT +AT MOST +ALL AGAIN IN/);
  expect(text).toMatch(/web +chat +tokens +550 +600 +5s/);
  expect(text).toMatch(/web +- +concurrency +0 +600 +-/);
});

test('releases under way stand below the routes', () => {
  const release = { id: 'rel_1', route: 'chat', to: 'b2', phase: 'canary', step: 2, steps: 5, share: 0.05 };
  const text = statusText({ ...well, releases: [{ ...release, waitsFor: 'It waits.' }] }, false);
  expect(text).toContain(
    'Releases\n  ROUTE  TO  PHASE   STEP    SHARE  WAITS FOR\n  chat   b2  canary  2 of 5  5 %    It waits.',
  );
});
