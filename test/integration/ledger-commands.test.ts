import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../../src/events/contracts.ts';
import type { Why } from '../../src/events/why.ts';
import { type Armature, backendOf, plainConfig, startArmature } from '../upstream/armature.ts';
import { startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

/** `armature why`, `events` and `keys`, as they are shipped. */

const COMMAND = join(import.meta.dirname, '../../bin/armature');

const answering = () =>
  startEngine((x) => x.json({ choices: [{ index: 0, message: { role: 'assistant', content: 'hello' } }] }));

async function json<Result>(armature: Armature, ...args: string[]): Promise<Result> {
  const { exitCode, stdout, stderr } = await armature.run(...args, '--json');
  expect([exitCode, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Result;
}

describe('why', () => {
  test('a failed request is told down to the probe that failed, and to the line of the file', async () => {
    await using armature = await startArmature(
      plainConfig('http://127.0.0.1:9/v1', {
        backend: { probe: { every: '100ms', unhealthy: 2, path: '/health' } },
      }),
    );
    await eventually(
      'the endpoint is unwell',
      async () => (await armature.events('endpoint-unwell')).length > 0,
      20_000,
    );
    const answer = await armature.chat({}, [['x-request-id', 'order-4711']]);
    expect(answer.status).toBe(502);
    const id = answer.header('x-armature-id')!;

    const why = await json<Why>(armature, 'why', id);
    expect(Object.keys(why)).toEqual(['id', 'subject', 'steps']);
    expect(why).toMatchObject({ id, subject: `request:${id}` });
    const codes = why.steps.map(({ code }) => code);
    expect(codes[0]).toBe('request-failed');
    expect(codes).toContain('no-endpoint');
    expect(codes.indexOf('endpoint-unwell')).toBeGreaterThan(codes.indexOf('no-endpoint'));
    expect(codes).toContain('snapshot-published');
    const ats = why.steps.map(({ at }) => at);
    expect(ats).toEqual(ats.toSorted().reverse());
    for (const step of why.steps) {
      expect(Object.keys(step)).toEqual(['at', 'what', 'code', 'reason', 'figures', 'origin', 'causes']);
      expect(step.reason).toMatch(/^[^{}[\]]+\.$/);
    }
    expect(why.steps.find(({ code }) => code === 'admitted')?.origin).toMatchObject({
      path: 'routes.chat.deadline',
      file: armature.file,
      line: expect.any(Number),
    });

    expect(await json<Why>(armature, 'why', 'order-4711')).toEqual({ ...why, id: 'order-4711' });
    expect((await json<Why>(armature, 'why', 'b1|http://127.0.0.1:9/v1')).steps[0]?.code).toBe(
      'endpoint-unwell',
    );
    expect((await json<Why>(armature, 'why', 'snapshot:1')).steps[0]?.code).toBe('snapshot-published');

    const tree = await armature.run('why', id);
    expect(tree.stdout).toContain('None of 1 endpoints could be used');
    expect(tree.stdout).toContain(`routes.chat.deadline: ${armature.file}:`);
    expect(tree.stdout).not.toContain('\u001b');

    const unknown = await armature.run('why', "a caller's own");
    expect(unknown).toMatchObject({ exitCode: 1, stdout: '' });
    expect(unknown.stderr).toContain('carries its second');
  });

  test('recorded decisions, taken again, are the same bit by bit', async () => {
    await using one = await answering();
    await using two = await answering();
    await using armature = await startArmature({
      backends: { b1: backendOf([one, two]), b2: backendOf([two, one]) },
      routes: {
        chat: {
          targets: [
            { backend: 'b1', weight: 3 },
            { backend: 'b2', weight: 1 },
          ],
          deadline: '30s',
        },
      },
    });
    const answers = await Promise.all(Array.from({ length: 12 }, () => armature.chat()));
    for (const answer of answers.slice(0, 4)) {
      const id = answer.header('x-armature-id')!;
      const replayed = await json<{ same: boolean; decisions: { policy: string; same: boolean }[] }>(
        armature,
        'why',
        id,
        '--replay',
      );
      expect(replayed).toMatchObject({ id, same: true });
      expect(replayed.decisions.map(({ policy }) => policy.split('@')[0])).toEqual([
        'target-by-weight',
        'least-cost-of-two',
      ]);
      expect((await armature.run('why', id, '--replay')).stdout).toMatch(/^same {7}target-by-weight@/);
    }
  });

  test('a request beyond the rate of records is told by the counts of its second', async () => {
    await using engine = await answering();
    await using armature = await startArmature(
      plainConfig(engine, { top: { gateway: { recordsPerSecondMax: 1 } } }),
    );
    const answers = await Promise.all(Array.from({ length: 40 }, () => armature.chat()));
    const ids = answers.map((answer) => answer.header('x-armature-id')!);
    await eventually('counts are stored', async () => (await armature.events('requests-grouped')).length > 0);
    const told = await Promise.all(ids.slice(-5).map((id) => json<Why>(armature, 'why', id)));
    const counted = told.filter(({ steps }) => steps[0]?.code === 'record-not-kept');
    expect(counted.length).toBeGreaterThan(0);
    expect(counted[0]!.steps[1]).toMatchObject({
      code: 'requests-grouped',
      figures: { route: 'chat', reason: 'ok' },
    });
  });
});

describe('events', () => {
  test('are JSON lines, all of them, the newest, those after one, or as they come', async () => {
    await using armature = await startArmature(plainConfig('http://127.0.0.1:9/v1'));
    const all = await armature.events();
    expect(all.length).toBeGreaterThan(2);
    for (const event of all) {
      expect(Object.keys(event)).toEqual(['id', 'at', 'type', 'subject', 'actor', 'causes', 'data']);
      expect(event.type).toMatch(/^[a-z]+-[a-z]+$/);
    }
    const idsOf = async (...args: string[]) => {
      const { stdout } = await armature.run('events', ...args);
      return stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as LedgerEvent).id);
    };
    const ids = all.map(({ id }) => id as string);
    expect(await idsOf('--limit', '2', '--json')).toEqual(ids.slice(-2));
    expect(await idsOf('--after', ids[0]!, '--limit', '1')).toEqual([ids[1]]);

    const follower = spawn(COMMAND, ['events', '--follow', '--data', armature.data]);
    const lines: LedgerEvent[] = [];
    createInterface({ input: follower.stdout }).on('line', (line) => lines.push(JSON.parse(line)));
    await eventually('the last ones are there', () => lines.length >= Math.min(10, ids.length), 20_000);
    const id = (await armature.chat()).header('x-armature-id');
    await eventually('the request is told', () => lines.some((event) => event.id === id));
    expect(new Set(lines.map((event) => event.id)).size).toBe(lines.length);
    follower.kill();

    expect(await armature.run('events', '--limit', 'many')).toMatchObject({ exitCode: 2 });
    expect(await armature.run('events', '--after', 'nothing')).toMatchObject({ exitCode: 1, stdout: '' });
  });

  test('a follower that leaves makes room for another', async () => {
    await using armature = await startArmature(plainConfig('http://127.0.0.1:9/v1'));
    for (let round = 0; round < 3; round++) {
      const controllers = Array.from({ length: 60 }, () => new AbortController());
      const url = `http://127.0.0.1:${armature.adminPort}/api/v1/events?follow=1&type=key-created`;
      const answers = await Promise.all(controllers.map(({ signal }) => fetch(url, { signal })));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      for (const controller of controllers) controller.abort();
      await eventually('there is room again', async () => {
        const probe = new AbortController();
        const { status } = await fetch(url, { signal: probe.signal });
        probe.abort();
        return status === 200;
      });
    }
  });
});

describe('keys', () => {
  const config = plainConfig('http://127.0.0.1:9/v1', { top: { tenants: { web: {}, batch: {} } } });
  const models = (armature: Armature, key: string) =>
    armature.ask({ method: 'GET', path: '/v1/models', headers: [['authorization', `Bearer ${key}`]] });

  test('act at once, and no longer once they are revoked', async () => {
    await using armature = await startArmature(config);
    const made = await json<{ tenant: string; id: string; key: string }>(armature, 'keys', 'create', 'web');
    expect(Object.keys(made)).toEqual(['tenant', 'id', 'key']);
    await eventually('the key acts', async () => (await models(armature, made.key)).status === 200);
    expect((await models(armature, `${made.key}x`)).status).toBe(401);

    const shown = await armature.run('keys', 'create', 'batch', '--name', 'nightly', '-c', armature.file);
    expect(shown.stdout).toMatch(/^ak_[0-9A-Za-z]{43}\n$/);
    expect(shown.stderr).toContain('of tenant batch');
    const list = await json<Record<string, unknown>[]>(armature, 'keys', 'ls');
    expect(list).toMatchObject([
      { id: made.id, tenant: 'web' },
      { tenant: 'batch', name: 'nightly' },
    ]);
    expect(JSON.stringify(list)).not.toMatch(/ak_|sha256/);

    expect((await armature.run('keys', 'revoke', made.id)).exitCode).toBe(0);
    await eventually('it acts no longer', async () => (await models(armature, made.key)).status === 401);
    expect((await json<Why>(armature, 'why', made.id)).steps[0]?.code).toBe('key-revoked');
    const wrong = await armature.run('keys', 'create', 'wep');
    expect(wrong).toMatchObject({ exitCode: 1, stdout: '' });
    expect(wrong.stderr).toContain("did you mean 'web'");
    expect(armature.logs).not.toMatch(/ak_[0-9A-Za-z]{43}/);
  });

  test('can be made while nothing runs', async () => {
    await using armature = await startArmature(config);
    await armature.stop();
    // By the configuration that ran last, and by the file.
    const made = await json<{ key: string; id: string }>(armature, 'keys', 'create', 'web');
    const other = await json<{ key: string }>(armature, 'keys', 'create', 'batch', '-c', armature.file);
    expect((await armature.run('keys', 'create', 'nobody')).stderr).toContain("no tenant 'nobody'");
    expect(await json<object[]>(armature, 'keys', 'ls')).toHaveLength(2);
    await armature.up();
    expect((await models(armature, made.key)).status).toBe(200);
    expect((await models(armature, other.key)).status).toBe(200);
    expect(await armature.events('key-created')).toHaveLength(2);
  });
});
