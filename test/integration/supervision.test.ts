import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Status } from '../../src/api/contracts.ts';
import { Armature, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { startEngine } from '../upstream/engine.ts';
import { endless } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

function partNames(armature: Armature): string[] {
  return armature
    .parts()
    .map(({ part }) => part)
    .sort();
}

test('a second up beside a living one is refused, and says who holds the data directory', async () => {
  await using engine = await startEngine();
  await using armature = await startArmature(plainConfig(engine));
  const { exitCode, stderr } = await armature.run('up', '-c', armature.file);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(`pid ${armature.pid('supervisor')}`);
  expect(stderr).toMatch(/since \d{4}-\d\d-\d\dT/);
  expect(stderr).toContain(`gateway http://127.0.0.1:${armature.gatewayPort}`);
  expect(stderr).not.toMatch(/^ {4}at /m);
  expect((await armature.chat()).status).toBe(200);
});

test('a taken port, faults in the file, and no file are told in plain words', async () => {
  await using armature = new Armature({});
  const refused = async (file = armature.file) => {
    const { exitCode, stderr } = await armature.run('up', '-c', file);
    return [exitCode, stderr.trim()];
  };
  await armature.configure({});
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(armature.gatewayPort, '127.0.0.1', resolve));
  expect(await refused()).toEqual([1, `armature: port ${armature.gatewayPort} at 127.0.0.1 is taken`]);
  other.close();
  expect(await refused('elsewhere.yaml')).toEqual([2, expect.stringContaining('elsewhere.yaml')]);
  await armature.configure({ routes: { chat: { targets: [{ backend: 'nobody' }] } } });
  expect(await refused()).toEqual([2, expect.stringContaining('nobody')]);
});

test('parts that die while the file is faulty come back on what was accepted last, and say so', async () => {
  await using engine = await startEngine();
  const included = 'conf.d/routes.yaml';
  await using armature = new Armature({});
  const { routes, ...rest } = plainConfig(engine, { top: { include: ['conf.d/*.yaml'] } });
  await armature.configure({ ...rest, backends: { ...rest['backends'], dummy: { engine: 'sim' } } });
  mkdirSync(join(armature.folder, 'conf.d'));
  writeFileSync(join(armature.folder, included), stringify({ routes }));
  await armature.up();
  await eventually('the host serves', async () => {
    const { backends } = JSON.parse((await armature.admin('/api/v1/status')).content.toString());
    return backends.every(
      (it: Status['backends'][number]) => it.host === undefined || it.host.state === 'serving',
    );
  });
  const status = async () => {
    const answer = await armature.admin('/api/v1/status');
    return JSON.parse(answer.content.toString()) as Status;
  };
  const before = await status();
  const good = readFileSync(armature.file, 'utf8');
  expect(statSync(join(armature.data, 'run/last-good.json')).mode & 0o777).toBe(0o600);

  writeFileSync(armature.file, 'routes: [broken');
  rmSync(join(armature.folder, included));
  const dead = ['control', 'gateway-0', 'host-dummy'].map((part) => armature.kill(part));
  const back = () => {
    const parts = armature.parts();
    return parts.length === 4 && !parts.some(({ pid }) => dead.includes(pid));
  };
  await eventually('all are back', back, 15_000);
  await eventually('they answer', async () => (await armature.chat()).status === 200, 15_000);
  const [refused] = await armature.events('configuration-refused');
  expect(String(refused.data.faults)).toContain('armature.yaml:1');
  const after = await status();
  expect(after.configuration.refused).toMatchObject({ event: refused.id });
  expect(after.trouble.map(({ what }) => what)).toContain('configuration-refused');
  // The host has another address; what the files said is the same.
  expect(after.snapshot.number - before.snapshot.number).toBeLessThanOrEqual(2);
  expect(await armature.events('configuration-changed')).toEqual([]);

  writeFileSync(join(armature.folder, included), stringify({ routes }));
  writeFileSync(armature.file, good);
  armature.kill('supervisor', 'SIGHUP');
  await eventually(
    'the mended file is taken',
    async () => (await status()).configuration.refused === undefined,
  );
  expect(await armature.stop()).toBe(0);
  expect(existsSync(join(armature.data, 'run/last-good.json'))).toBe(false);
});

test('what runs is written to the data directory, for this user alone, and goes away with it', async () => {
  await using engine = await startEngine();
  await using armature = await startArmature(plainConfig(engine));
  const run = (file: string) => join(armature.data, 'run', file);
  expect(JSON.parse(readFileSync(run('addresses.json'), 'utf8'))).toEqual({
    gateway: `http://127.0.0.1:${armature.gatewayPort}`,
    admin: `http://127.0.0.1:${armature.adminPort}`,
  });
  const token = readFileSync(run('admin.token'), 'utf8');
  expect(token).toMatch(/^[0-9a-f]{64}\n$/);
  for (const file of ['admin.token', 'supervisor.json', 'addresses.json']) {
    expect(statSync(run(file)).mode & 0o777).toBe(0o600);
  }
  expect(await armature.stop()).toBe(0);
  expect(armature.parts()).toEqual([]);
  expect(() => statSync(run('addresses.json'))).toThrow('ENOENT');
  await armature.up();
  expect(readFileSync(run('admin.token'), 'utf8')).toBe(token);
});

test('SIGTERM lets running requests end; a second signal does not wait for them', async () => {
  await using engine = await startEngine(endless());
  await using armature = await startArmature(plainConfig(engine));
  void armature.chat({ stream: true }, [], 60_000);
  await engine.posted(1);
  armature.kill('supervisor', 'SIGTERM');
  await eventually('the gateway is unready', async () => {
    const answer = await armature.ask({ method: 'GET', path: '/readyz' });
    return answer.status !== 200;
  });
  expect(engine.active).toBe(1);
  armature.kill('supervisor', 'SIGINT');
  expect(await armature.left(10_000)).toBe(0);
  expect(armature.parts()).toEqual([]);
});

test('a part that keeps dying is started again, later and later', async () => {
  await using engine = await startEngine();
  await using armature = await startArmature(plainConfig(engine));
  for (let deaths = 0; deaths < 3; deaths++) {
    const pid = armature.kill('gateway-0');
    await eventually(
      'another worker',
      () => armature.parts().some((one) => one.part === 'gateway-0' && one.pid !== pid),
      10_000,
    );
  }
  const waits = armature.logs
    .split('\n')
    .filter((line) => line.includes('"part":"supervisor"') && line.includes('gateway-0 died'))
    .map((line) => JSON.parse(line).restartInMs as number);
  expect(waits[0]).toBe(0);
  expect(waits[1]).toBeGreaterThanOrEqual(400);
  expect(waits[1]).toBeLessThanOrEqual(600);
  expect(waits[2]).toBeGreaterThanOrEqual(800);
  await armature.ready();
  const died = await eventually('the deaths are in the ledger', async () => {
    const events = await armature.events('worker-died');
    return events.length === 3 && events;
  });
  expect(died[0]).toMatchObject({ subject: 'worker:0', data: { signal: 'SIGKILL', restartInMs: 0 } });
});

test('a supervisor that is killed is followed by one that takes over the living parts', async () => {
  await using engine = await startEngine(endless());
  await using armature = await startArmature(plainConfig(engine, { top: { gateway: { workers: 2 } } }));
  const before = armature.parts().filter(({ part }) => part !== 'supervisor');
  const stream = armature.chat({ stream: true }, [], 60_000);
  await engine.posted(1);
  armature.kill('supervisor');
  await armature.left();
  await armature.up({ ready: false });
  await armature.ready(2000);
  await eventually('all have been taken over', () => armature.logs.match(/ taken over/g)?.length === 3);
  expect(armature.parts().filter(({ part }) => part !== 'supervisor')).toEqual(before);
  expect(engine.active).toBe(1);
  const adopted = await eventually('the ledger says so', async () => {
    const events = await armature.events('part-adopted');
    return events.length === 3 && events;
  });
  expect(adopted.map(({ data }) => data.part).sort()).toEqual(['control', 'gateway-0', 'gateway-1']);

  const pid = armature.kill('gateway-1');
  await eventually('a part that was taken over is started again', () =>
    armature.parts().some((one) => one.part === 'gateway-1' && one.pid !== pid),
  );
  // Two different ones: two of a kind may become one on their way.
  armature.kill('supervisor', 'SIGTERM');
  armature.kill('supervisor', 'SIGINT');
  expect(await armature.left()).toBe(0);
  expect(armature.parts()).toEqual([]);
  await stream;
});

test('asked to leave again, up ends what runs at once, with an error that may be retried', async () => {
  await using engine = await startEngine(endless());
  await using armature = await startArmature(
    plainConfig(engine, { top: { gateway: { drain: '60s', drainDelay: '60s' } } }),
  );
  const stream = armature.chat({ stream: true }, [], 60_000);
  await engine.posted(1);
  armature.kill('supervisor', 'SIGTERM');
  await eventually(
    'unready',
    async () => (await armature.ask({ method: 'GET', path: '/readyz' })).status === 503,
  );
  armature.kill('supervisor', 'SIGTERM');
  const answer = await stream;
  expect([answer.error?.code, answer.done]).toEqual(['draining', false]);
  expect(await armature.left()).toBe(0);
  expect(armature.logs).not.toContain('SIGKILL');
});

test('parts without a supervisor drain and leave; an up that comes meanwhile takes the listener beside them', async () => {
  await using engine = await startEngine(endless());
  await using armature = await startArmature(plainConfig(engine));
  const stream = armature.chat({ stream: true }, [], 60_000);
  await engine.posted(1);
  armature.kill('supervisor');
  await armature.left();
  expect((await armature.ask({ method: 'GET', path: '/readyz' })).status).toBe(200);
  await eventually(
    'the orphan has closed its listener',
    async () => (await armature.ask({ method: 'GET', path: '/readyz' })).fault !== undefined,
    15_000,
  );
  await armature.up();
  expect(engine.active).toBe(1);
  // The orphaned control stays until its worker has told it everything.
  expect(partNames(armature)).toEqual(['control', 'control', 'gateway-0', 'gateway-0', 'supervisor']);
  engine.die();
  expect((await stream).done).toBe(false);
  await eventually('the orphans have left', () => partNames(armature).length === 3);
});

test('listeners move when the file says so: new workers come before the old ones leave, and streams go on', async () => {
  await using engine = await startEngine(endless());
  await using armature = await startArmature(plainConfig(engine, { top: { gateway: { workers: 2 } } }));
  using client = await RawClient.open(armature.gatewayPort);
  const stream = client.request({ path: '/v1/chat/completions', body: chatBody({ stream: true }) });
  await engine.posted(1);
  const before = armature.parts();
  armature.gatewayPort = 0;
  armature.adminPort = 0;
  await armature.configure(plainConfig(engine, { top: { gateway: { workers: 2 } } }));
  armature.kill('supervisor', 'SIGHUP');
  await armature.ready();
  await eventually(
    'the admin listener has moved',
    async () => (await armature.admin('/metrics')).status === 200,
  );
  expect(JSON.parse(readFileSync(join(armature.data, 'run', 'addresses.json'), 'utf8'))).toEqual({
    gateway: `http://127.0.0.1:${armature.gatewayPort}`,
    admin: `http://127.0.0.1:${armature.adminPort}`,
  });
  await eventually('the idle old worker has left', () => partNames(armature).length === 5);
  const seen = stream.events.length;
  await stream.until(({ events }) => events.length > seen + 5, 5000);
  engine.die();
  await eventually('the old workers have left', () => partNames(armature).length === 4, 10_000);
  const old = new Set(before.map(({ pid }) => pid));
  expect(
    armature
      .parts()
      .filter(({ pid }) => old.has(pid))
      .map(({ part }) => part),
  ).toEqual(['supervisor']);
});
