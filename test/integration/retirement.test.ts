import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RetirementPlanView, RetirementView } from '../../src/api/contracts.ts';
import type { LedgerEvent } from '../../src/events/contracts.ts';
import type { Why } from '../../src/events/why.ts';
import { gguf } from '../registry/model-files.ts';
import { type Armature, backendOf, startArmature } from '../upstream/armature.ts';
import { type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

/** `armature retire`, as it is shipped: plan, drain, export, proof, undo, the last step. */

const answering = (text: string) =>
  startEngine((x) => x.json({ choices: [{ index: 0, message: { role: 'assistant', content: text } }] }));

/** Probes are no calls. */
const chats = (engine: ScriptedEngine) =>
  engine.requests.filter(({ path }) => path.endsWith('/chat/completions')).length;

async function json<Result>(armature: Armature, ...args: string[]): Promise<Result> {
  const { exitCode, stdout, stderr } = await armature.run(...args, '--json');
  expect([exitCode, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Result;
}

const shown = (armature: Armature, id: string) => json<RetirementView>(armature, 'retire', 'show', id);

/** Also while control is away. */
async function until(armature: Armature, id: string, state: string): Promise<RetirementView> {
  await eventually(
    `it is ${state}`,
    async () => {
      const { exitCode, stdout } = await armature.run('retire', 'show', id, '--json');
      return exitCode === 0 && (JSON.parse(stdout) as RetirementView).state === state;
    },
    40_000,
  );
  return shown(armature, id);
}

describe('a backend', () => {
  test('is drained, written out, watched over a death of control, and finished; why walks it all', async () => {
    await using one = await answering('one');
    await using two = await answering('two');
    await using armature = await startArmature({
      backends: { one: backendOf(one), two: backendOf(two) },
      routes: {
        chat: { targets: [{ backend: 'one' }, { backend: 'two' }] },
        other: { targets: [{ backend: 'two' }] },
      },
    });
    for (let i = 0; i < 20; i++) expect((await armature.chat()).status).toBe(200);
    const asked = chats(one);
    expect(asked).toBeGreaterThan(0);

    const plan = await json<RetirementPlanView>(armature, 'retire', 'one');
    expect(plan).toMatchObject({
      subject: { kind: 'backend', name: 'one' },
      blockers: [],
      references: [{ path: 'routes.chat.targets[0].backend', blocks: false }],
      drains: {
        chat: [
          { backend: 'one', weight: 1 },
          { backend: 'two', weight: 1 },
        ],
      },
    });
    expect(plan.callers).toMatchObject([{ tenant: 'open', requests: asked }]);
    const refused = await armature.run('retire', 'two', '--yes');
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain('nothing else would answer');

    const { id } = await json<RetirementView>(armature, 'retire', 'one', '--yes', '--watch', '5s');
    const early = await armature.run('retire', 'finish', id);
    expect([early.exitCode, early.stderr]).toEqual([1, expect.stringContaining('not proven yet')]);
    await until(armature, id, 'watching');
    armature.kill('control');
    const proven = await until(armature, id, 'proven');
    for (let i = 0; i < 10; i++) expect((await armature.chat()).text).toContain('two');
    expect(chats(one)).toBe(asked);
    expect(proven.exported!.events).toBeGreaterThanOrEqual(asked);
    const written = readFileSync(join(proven.exported!.folder, 'records.jsonl'));
    expect(createHash('sha256').update(written).digest('hex')).toBe(proven.exported!.sha256);
    const records = written
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as LedgerEvent);
    expect(records.filter(({ data }) => data['backend'] === 'one')).toHaveLength(asked);

    const finished = await json<RetirementView>(armature, 'retire', 'finish', id);
    expect(finished.state).toBe('finished');
    const late = await armature.run('retire', 'undo', id);
    expect([late.exitCode, late.stderr]).toEqual([1, expect.stringContaining('cannot be undone any more')]);
    const why = await json<Why>(armature, 'why', id);
    const codes = why.steps.map(({ code }) => code);
    for (const code of ['finished', 'finishing', 'proven', 'exported', 'drained', 'started'])
      expect(codes).toContain(`retirement-${code}`);
    expect(codes).toContain('configuration-changed');
  });

  test('that is undone has its weight again', async () => {
    await using one = await answering('one');
    await using two = await answering('two');
    await using armature = await startArmature({
      backends: { one: backendOf(one), two: backendOf(two) },
      routes: { chat: { targets: [{ backend: 'one', weight: 3 }, { backend: 'two' }] } },
    });
    const { id } = await json<RetirementView>(armature, 'retire', 'backend:one', '--yes');
    await until(armature, id, 'watching');
    expect((await json<RetirementView>(armature, 'retire', 'undo', id)).state).toBe('undone');
    for (let i = 0; i < 20; i++) await armature.chat();
    expect(chats(one)).toBeGreaterThan(0);
    const again = await json<RetirementPlanView>(armature, 'retire', 'one');
    expect(again.drains).toEqual({
      chat: [
        { backend: 'one', weight: 3 },
        { backend: 'two', weight: 1 },
      ],
    });
    expect(again.blockers).toEqual([]);
  });
});

test('a version that nobody uses is archived by the last step; one that has an alias is not begun', async () => {
  await using engine = await answering('hello');
  await using armature = await startArmature({
    backends: { one: backendOf(engine) },
    routes: { chat: { targets: [{ backend: 'one' }] } },
  });
  const folder = mkdtempSync(join(tmpdir(), 'armature-model-'));
  const [file, manifest] = [join(folder, 'model.gguf'), join(folder, 'manifest.yaml')];
  writeFileSync(file, gguf({ 'general.architecture': 'llama' }));
  writeFileSync(manifest, JSON.stringify({ training: { unknown: 'made for a test' } }));
  expect((await armature.run('registry', 'add', 'm', '--file', file, '--manifest', manifest)).exitCode).toBe(
    0,
  );
  expect((await armature.run('registry', 'alias', 'm', 'production', '1')).exitCode).toBe(0);
  const kept = await json<RetirementPlanView>(armature, 'retire', 'm@production');
  expect(kept.subject).toEqual({ kind: 'version', name: 'm@1' });
  expect(kept.blockers.join()).toContain('alias m@production');
  expect((await armature.run('registry', 'add', 'm', '--file', file, '--manifest', manifest)).exitCode).toBe(
    0,
  );
  const { id } = await json<RetirementView>(armature, 'retire', 'm@2', '--yes', '--watch', '5s');
  await until(armature, id, 'proven');
  // Somebody uses it after all: the last step is not begun, and begins once that is over.
  expect((await armature.run('registry', 'alias', 'm', 'next', '2')).exitCode).toBe(0);
  expect((await armature.run('retire', 'finish', id)).exitCode).toBe(1);
  await eventually('who uses it is told', async () =>
    (await shown(armature, id)).stuck?.startsWith('alias m@next uses it again'),
  );
  expect((await armature.run('registry', 'alias', 'm', 'next', '--remove')).exitCode).toBe(0);
  await until(armature, id, 'proven');
  const { finished } = await json<RetirementView>(armature, 'retire', 'finish', id);
  expect(finished).toMatchObject({ keys: [], archived: true });
  // One that is over does not stand in the way of the next.
  expect((await armature.run('registry', 'restore', 'm@2')).exitCode).toBe(0);
  expect((await json<RetirementPlanView>(armature, 'retire', 'm@2')).blockers).toEqual([]);
  expect((await armature.events('version-archived')).map(({ subject }) => subject)).toEqual(['version:m@2']);
  rmSync(folder, { recursive: true });
});

describe('a route', () => {
  test('answers nobody, is watched anew at each call, and takes its own keys with it at the end', async () => {
    await using engine = await answering('hello');
    await using armature = await startArmature({
      backends: { one: backendOf(engine, { timeouts: { total: '2s' } }) },
      routes: {
        old: { targets: [{ backend: 'one' }], deadline: '2s' },
        chat: { targets: [{ backend: 'one' }] },
      },
      tenants: { loner: { routes: ['old'] }, moved: { routes: ['old'] }, both: { routes: ['old', 'chat'] } },
    });
    const loner = await json<{ id: string; key: string }>(armature, 'keys', 'create', 'loner');
    const moved = await json<{ id: string; key: string }>(armature, 'keys', 'create', 'moved');
    const both = await json<{ id: string; key: string }>(armature, 'keys', 'create', 'both');
    const call = (key: string, model = 'old') =>
      armature.chat({ model }, [['authorization', `Bearer ${key}`]]);
    await eventually('the keys are live', async () => (await call(loner.key)).status === 200);
    expect((await call(both.key)).status).toBe(200);

    const plan = await json<RetirementPlanView>(armature, 'retire', 'old');
    expect(plan.callers.map(({ tenant }) => tenant).sort()).toEqual(['both', 'loner']);
    expect(plan.keys).toEqual([
      { id: loner.id, tenant: 'loner' },
      { id: moved.id, tenant: 'moved' },
    ]);

    const { id } = await json<RetirementView>(armature, 'retire', 'old', '--yes', '--watch', '5s');
    await until(armature, id, 'watching');
    const told = await call(both.key);
    expect([told.status, told.json().error.code]).toEqual([404, 'unknown_route']);
    expect(told.json().error.message).toContain('was retired');
    expect((await call(both.key, 'chat')).status).toBe(200);
    await eventually('the call is seen', async () => (await shown(armature, id)).calls > 0, 20_000);
    expect((await shown(armature, id)).lastCall).toMatchObject({ tenant: 'both' });

    await until(armature, id, 'proven');
    const token = readFileSync(join(armature.data, 'run/admin.token'), 'utf8').trim();
    const elsewhere = await armature.admin('/api/v1/config', {
      method: 'PUT',
      body: { tenants: { moved: { routes: ['old', 'chat'] } } },
      headers: [['authorization', `Bearer ${token}`]],
    });
    expect(elsewhere.status).toBe(200);
    const finished = await json<RetirementView>(armature, 'retire', 'finish', id);
    expect(finished.finished).toMatchObject({ keys: [loner.id], archived: false });
    await eventually('its key is revoked', async () => (await call(loner.key, 'chat')).status === 401);
    for (const { key } of [both, moved]) expect((await call(key, 'chat')).status).toBe(200);
  });
});
