import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import type { Config, Status } from '../../src/api/contracts.ts';
import type { LedgerEvent } from '../../src/events/contracts.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { socketPath } from '../../src/links/socket-path.ts';
import { workerMetrics } from '../../src/telemetry/metrics.ts';
import { RawClient } from '../upstream/client.ts';
import { eventually } from '../upstream/waiting.ts';
import { ControlProcess } from './control-process.ts';

const CONFIG = {
  backends: {
    far: {
      engine: 'openai',
      model: 'm',
      endpoints: ['http://127.0.0.1:9/v1'],
      auth: { bearer: 'sesame-secret' },
      probe: { off: true },
    },
    near: { engine: 'sim' },
  },
  routes: { chat: { targets: [{ backend: 'far' }], deadline: '5s' } },
  tenants: { web: {}, batch: {} },
};

const withDeadline = (deadline: string) => ({
  ...CONFIG,
  routes: { chat: { ...CONFIG.routes.chat, deadline } },
});

function fact(id: string): LedgerEvent {
  return {
    id,
    at: new Date(systemClock.wall()).toISOString(),
    type: 'endpoint-opened',
    subject: 'endpoint:x',
    actor: 'armature',
    causes: [],
    data: {},
  };
}

test('control that is killed comes back with the same snapshot, and stores what is sent again once', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const gateway = await control.gateway();
  const { number, settings, event } = gateway.snapshot;
  expect(settings.backends.far).toMatchObject({ auth: { bearer: 'sesame-secret' } });
  const facts = [{ kind: 'event' as const, event: fact('ev_1') }];
  gateway.link.send({ type: 'facts', boot: 'boot-0', sequence: 1, facts });
  await eventually('the facts are stored', () => gateway.stored.includes(1));

  await control.end('SIGKILL');
  await control.up();
  await eventually('the snapshot again', () => gateway.snapshots.length >= 2);
  expect(gateway.snapshot).toMatchObject({ number, event });
  gateway.link.send({ type: 'facts', boot: 'boot-0', sequence: 1, facts });
  gateway.link.send({
    type: 'facts',
    boot: 'boot-0',
    sequence: 2,
    facts: [{ kind: 'event', event: fact('ev_2') }],
  });
  await eventually('both are stored', () => gateway.stored.length === 3);
  expect((await control.events('endpoint-opened')).map(({ id }) => id)).toEqual(['ev_1', 'ev_2']);
  expect(await control.end('SIGTERM')).toBe(0);
  expect(readFileSync(`${control.data}/state.db`).includes('sesame-secret')).toBe(false);
  expect(control.log).not.toContain('sesame-secret');
});

test('control that starts beside its workers while the file is faulty goes on with what was accepted last', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const gateway = await control.gateway();
  const { number, event } = gateway.snapshot;
  const good = readFileSync(control.file, 'utf8');
  writeFileSync(control.file, 'routes: [broken');
  await control.end('SIGKILL');
  await control.up();
  await eventually('the snapshot again', () => gateway.snapshots.length >= 2);
  expect(gateway.snapshot).toMatchObject({ number, event });
  const refused = await control.event('configuration-refused');
  expect(String(refused.data.faults)).toContain('armature.yaml:1');
  const { configuration } = await control.json<Status>('/api/v1/status');
  expect(configuration.refused).toMatchObject({ event: refused.id });
  expect(control.log).toContain('a configuration is refused; the one before it stays');

  // A live change stands over it, and the mended file is taken again.
  expect(
    (await control.change('PUT', '/api/v1/config', { routes: { chat: { deadline: '9s' } } })).status,
  ).toBe(200);
  await control.end('SIGKILL');
  await control.up();
  expect((await gateway.after(number)).settings.routes.chat?.deadline).toBe(9000);
  writeFileSync(control.file, good.replace('model: m', 'model: other'));
  control.signal('SIGHUP');
  const mended = () => gateway.snapshots.find(({ settings }) => settings.backends.far?.model === 'other');
  expect((await eventually('the mended file', mended)).settings.routes.chat?.deadline).toBe(9000);

  // Without a copy of this file there is nothing to begin on.
  await control.end('SIGTERM');
  writeFileSync(control.file, 'routes: [broken');
  rmSync(`${control.data}/run/last-good.json`);
  await expect(control.up()).rejects.toThrow('control left');
});

test('SIGHUP swaps a good file whole and tells who wrote it; a bad one changes nothing', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const git = (...args: string[]) =>
    execFileSync(
      'git',
      ['-C', control.folder, '-c', 'user.name=Ada', '-c', 'user.email=a@example.org', ...args],
      { encoding: 'utf8' },
    );
  git('init', '-q');
  const gateway = await control.gateway();
  const first = gateway.snapshot.number;

  control.write(withDeadline('7s'));
  git('add', 'armature.yaml');
  git('commit', '-q', '-m', 'more time');
  control.signal('SIGHUP');
  const next = await gateway.after(first);
  expect(next).toMatchObject({ number: first + 1, settings: { routes: { chat: { deadline: 7000 } } } });
  const changed = await control.event('configuration-changed');
  const line =
    readFileSync(control.file, 'utf8')
      .split('\n')
      .findIndex((text) => text.includes('deadline')) + 1;
  expect(changed.actor).toBe('file:armature.yaml');
  expect(changed.data.changes).toEqual([
    {
      path: 'routes.chat.deadline',
      before: '5s',
      after: '7s',
      file: control.file,
      line,
      commit: git('rev-parse', 'HEAD').trim(),
      author: 'Ada',
      date: expect.any(String),
    },
  ]);
  const published = (await control.events('snapshot-published')).at(-1)!;
  expect(published).toMatchObject({ id: next.event, causes: [changed.id] });

  writeFileSync(control.file, `${readFileSync(control.file, 'utf8')}\nroute: {}\n`);
  control.signal('SIGHUP');
  const refused = await control.event('configuration-refused');
  expect(String(refused.data.faults)).toContain('"routes"');
  expect(gateway.snapshot.number).toBe(first + 1);
  const status = await control.json<Status>('/api/v1/status');
  expect(status.configuration.refused).toMatchObject({ event: refused.id });
  expect(status.trouble.map(({ what }) => what)).toContain('configuration-refused');

  await control.end('SIGTERM');
  control.write(withDeadline('8s'));
  await control.up();
  const later = (await control.events('configuration-changed')).at(-1)!;
  expect(later.data.changes).toMatchObject([{ path: 'routes.chat.deadline', file: control.file, line }]);
  expect((await control.events('snapshot-published')).at(-1)).toMatchObject({
    causes: [later.id],
    data: { number: first + 2 },
  });
});

test('a live change stands over the file, survives a restart, is taken back, and gives way to an edited file', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const gateway = await control.gateway();
  const deadline = () => (gateway.snapshot.settings.routes.chat as { deadline: number }).deadline;
  const put = (body: unknown) => control.change('PUT', '/api/v1/config', body);

  const bad = await put({ routes: { chat: { deadlin: '3s' } } });
  expect(bad.status).toBe(400);
  expect(JSON.parse(bad.content.toString()).error).toMatchObject({
    code: 'invalid_request',
    faults: [expect.stringContaining('did you mean "deadline"?')],
  });
  const good = await put({ routes: { chat: { deadline: '3s' } }, gateway: { listen: '127.0.0.1:1' } });
  expect(good.status).toBe(200);
  const done = JSON.parse(good.content.toString());
  expect(done).toMatchObject({
    restart: ['gateway.listen'],
    changes: [{ path: 'routes.chat.deadline', after: '3s' }, { path: 'gateway' }],
  });
  await eventually('the change', () => deadline() === 3000);

  await control.end('SIGKILL');
  await control.up();
  const config = await control.json<Config>('/api/v1/config');
  expect(config.snapshot).toBe(done.snapshot);
  expect(config.origins['routes.chat.deadline']).toMatchObject({ actor: 'operator', event: done.event });
  expect(config.overlays.map(({ path }) => path).sort()).toEqual(['gateway.listen', 'routes.chat.deadline']);
  expect(JSON.stringify(config)).not.toContain('sesame-secret');

  expect((await put({ gateway: { listen: null } })).status).toBe(200);
  control.write(withDeadline('9s'));
  control.signal('SIGHUP');
  await eventually('the file is right', () => deadline() === 9000);
  expect((await control.event('overlay-refused')).data).toMatchObject({
    path: 'routes.chat.deadline',
    code: 'file-edited',
  });
  expect((await control.json<Config>('/api/v1/config')).overlays).toEqual([]);
});

test('a key acts as soon as it is made, and no longer once it is revoked', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const gateway = await control.gateway();
  const before = gateway.snapshot.number;
  const made = await control.change('POST', '/api/v1/keys', { tenant: 'web', name: 'laptop' });
  expect(made.status).toBe(201);
  const { id, key } = JSON.parse(made.content.toString());
  const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`;
  expect((await gateway.after(before)).keys).toEqual([{ id, tenant: 'web', hash }]);
  expect(JSON.stringify(await control.json('/api/v1/keys'))).not.toContain(hash);
  expect((await control.change('DELETE', `/api/v1/keys/${id}`)).status).toBe(200);
  await eventually('the key is gone', () => gateway.snapshot.keys.length === 0);
  expect((await control.change('DELETE', '/api/v1/keys/key_nothing')).status).toBe(404);
  expect((await control.change('POST', '/api/v1/keys', { tenant: 'wep' })).content.toString()).toContain(
    "did you mean 'web'",
  );
});

test('a host is reached where it says that it serves, also over a restart of control, until it leaves', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const gateway = await control.gateway();
  expect(gateway.snapshot.endpoints).toEqual({ far: ['http://127.0.0.1:9/v1'], near: [] });
  const host = control.host('near', 'http://127.0.0.1:41234/v1');
  const near = () => gateway.snapshot.endpoints.near;
  await eventually('the address', () => near()?.length === 1);
  expect(near()).toEqual(['http://127.0.0.1:41234/v1']);
  const { number } = gateway.snapshot;

  await control.end('SIGKILL');
  const seen = gateway.snapshots.length;
  await control.up();
  await eventually('control knows the host again', async () => {
    const { backends } = await control.json<Status>('/api/v1/status');
    return (
      backends.find(({ backend }) => backend === 'near')?.host?.state === 'serving' &&
      gateway.snapshots.length > seen
    );
  });
  expect(gateway.snapshots.slice(seen).map((it) => it.number)).toEqual([number]);

  await host.close();
  await eventually('the address is gone', () => near()?.length === 0);
  expect((await control.event('host-gone')).subject).toBe('backend:near');
});

async function metricsOf(requests: number, inflight: number): Promise<unknown> {
  const registry = new Registry();
  const metrics = workerMetrics(registry, () => ({
    endpoints: [{ backend: 'far', endpoint: 'http://a', inflight, limit: 8, breaker: 'closed' }],
    queued: { critical: 0, interactive: 0, standard: 0, batch: 0 },
    routes: [{ route: 'chat', ready: true }],
    factsWaiting: 0,
    batches: {},
  }));
  metrics.requests.of('chat', 'web', 'ok').add(requests);
  return JSON.parse(JSON.stringify(await registry.getMetricsAsJSON()));
}

test('metrics are those of all workers, the dead included, and no counter falls when control is killed', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const a = await control.gateway({ worker: 0, boot: 'a', metrics: await metricsOf(3, 1) });
  const b = await control.gateway({ worker: 1, boot: 'b', metrics: await metricsOf(4, 2) });
  const total = () => control.metric('armature_requests_total{');
  const inflight = () => control.metric('armature_inflight{');
  expect([await total(), await inflight(), await control.metric('armature_route_ready')]).toEqual([7, 3, 1]);

  b.link.send({ type: 'parting', metrics: await metricsOf(6, 0) });
  await b.link.close();
  await eventually('the worker has left', async () => (await inflight()) === 1);
  expect(await total()).toBe(9);

  // A worker that answers nothing is taken as it was; what it sends can break nothing.
  a.metrics = { nonsense: true };
  expect(await total()).toBe(9);
  a.metrics = await metricsOf(5, 0);
  expect(await total()).toBe(11);

  await control.end('SIGKILL');
  await control.up();
  await eventually(
    'the living worker is back',
    async () => (await control.json<Status>('/api/v1/status')).workers[0]?.state !== 'down',
  );
  expect(await total()).toBe(11);
});

test('events are told as they come, after one that is named, and of one type', async () => {
  await using control = await ControlProcess.start(CONFIG);
  using client = await RawClient.open(control.adminPort);
  const answer = client.request({ method: 'GET', path: '/api/v1/events?follow=1&type=key-created' });
  await answer.until(({ status }) => status === 200);
  await control.change('POST', '/api/v1/keys', { tenant: 'web' });
  await answer.until(({ body }) => body.includes('"key-created"'));
  const [first] = await control.events('key-created');
  await control.change('POST', '/api/v1/keys', { tenant: 'batch' });
  const after = (
    await control.admin(`/api/v1/events?type=key-created&after=${first!.id}`)
  ).content.toString();
  expect(
    after
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).data.tenant),
  ).toEqual(['batch']);
  expect((await control.admin('/api/v1/events?after=nothing')).status).toBe(400);
  expect((await control.admin('/api/v1/events?limit=0')).status).toBe(400);
});

test('without a supervisor control makes room for another, and leaves when its workers have', async () => {
  await using control = await ControlProcess.start(CONFIG);
  const gateway = await control.gateway();
  await eventually('its socket is free', () => !existsSync(socketPath(control.data, 'control')), 20_000);
  await eventually('nobody is taken in any more', async () =>
    (await control.admin('/api/v1/status')).fault?.includes('ECONNREFUSED'),
  );
  gateway.link.send({
    type: 'facts',
    boot: 'boot-0',
    sequence: 1,
    facts: [{ kind: 'event', event: fact('ev_1') }],
  });
  await eventually('the fact is stored', () => gateway.stored.includes(1));
  await gateway.link.close();
  expect(await control.left()).toBe(0);
});
