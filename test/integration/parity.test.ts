import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Armature, backendOf, type Config } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chatAnswer } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** Golden prompts whose answer is one word. */
const golden = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `p${i}`,
    kind: 'chat',
    request: { messages: [{ role: 'user', content: `ticket ${i}` }], max_tokens: 4 },
    decision: 'first-word',
  }))
    .map((prompt) => JSON.stringify(prompt))
    .join('\n');

const sharesOf = (text: string) => createHash('sha256').update(text).digest().readUInt32LE() / 2 ** 32;

/** Decides on tickets, otherwise than others do in such a share of them. */
function deciding(flips: () => number): Script {
  return async (x) => {
    const { content } = x.request.json().messages[0];
    const word =
      sharesOf(`flip ${content}`) < flips() ? 'other' : sharesOf(content) < 0.5 ? 'refund' : 'reply';
    await x.json(chatAnswer(word));
  };
}

const put = (armature: Armature, body: unknown) =>
  armature.admin('/api/v1/config', {
    method: 'PUT',
    body,
    headers: [
      ['authorization', `Bearer ${readFileSync(join(armature.data, 'run/admin.token'), 'utf8').trim()}`],
    ],
  });

const GOLDEN = 'golden.jsonl';

/** An Armature with golden prompts beside its configuration. */
async function started(config: Config, prompts: number): Promise<Armature> {
  const armature = new Armature({});
  try {
    writeFileSync(join(armature.folder, GOLDEN), golden(prompts));
    await armature.configure(config);
    await armature.up();
    return armature;
  } catch (error) {
    await armature[Symbol.asyncDispose]();
    throw error;
  }
}

test('a move to a backend is refused until parity is certified, and the certificate ends with what it was given for', async () => {
  await using reference = await startEngine(deciding(() => 0));
  await using same = await startEngine(deciding(() => 0));
  await using other = await startEngine(deciding(() => 0.07));
  const config = (model: string): Config => ({
    backends: { a: backendOf(reference), b: backendOf(same, { model }), c: backendOf(other) },
    routes: { chat: { targets: [{ backend: 'a' }], deadline: '30s', parity: { golden: GOLDEN } } },
  });
  await using armature = await started(config('engine-model'), 400);
  const moved = (backend: string) =>
    put(armature, { routes: { chat: { targets: [{ backend: 'a' }, { backend, weight: 1 }] } } });
  const refused = await moved('b');
  expect([refused.status, refused.content.toString()]).toEqual([
    400,
    expect.stringContaining(
      '\\"b\\" has no valid certificate of parity with \\"a\\": it was not compared yet',
    ),
  ]);

  writeFileSync(join(armature.folder, 'broken.jsonl'), `${golden(1)}\n{"kind": "chat"}`);
  const broken = await armature.run('parity', 'run', 'a', 'b', '--golden', 'broken.jsonl');
  expect([broken.exitCode, broken.stderr]).toEqual([
    2,
    expect.stringContaining('broken.jsonl: line 2: request'),
  ]);

  const compared = (backend: string) =>
    armature.run('parity', 'run', 'a', backend, '--golden', GOLDEN, '--json');
  const certified = await compared('b');
  expect(certified.exitCode, certified.stderr).toBe(0);
  const certificate = JSON.parse(certified.stdout);
  expect(certificate).toMatchObject({ state: 'ended', verdict: 'certified', reason: 'flips-below-bound' });
  expect(certificate.figures.prompts).toBeLessThan(250);
  expect(certificate.fingerprints.backend.settings.model).toBe('engine-model');
  const rejected = await compared('c');
  expect([rejected.exitCode, JSON.parse(rejected.stdout).verdict]).toEqual([1, 'rejected']);

  const { stdout: matrix } = await armature.run('parity', 'matrix', '--json');
  expect(
    JSON.parse(matrix).cells.map(({ backend, standing }: Record<string, string>) => [backend, standing]),
  ).toEqual([
    ['c', 'rejected'],
    ['b', 'certified'],
  ]);
  expect((await armature.run('parity', 'show', certificate.id)).stdout).toContain('certified: b against a');
  expect((await moved('b')).status).toBe(200);
  expect((await moved('c')).status).toBe(400);

  // Another model behind b: what was certified is no more.
  await armature.configure(config('engine-model-2'));
  armature.kill('supervisor', 'SIGHUP');
  await eventually('the expiry', async () => (await armature.events('parity-expired')).length === 1);
  await eventually('the flag', async () => (await armature.events('parity-missing')).length === 1);
  const [missing] = await armature.events('parity-missing');
  const { steps } = await armature.why(missing.id);
  expect(steps.map(({ code }: { code: string }) => code)).toEqual(
    expect.arrayContaining(['parity-missing', 'parity-expired', 'parity-certified', 'parity-started']),
  );
  expect((await armature.chat()).status).toBe(200);
});

test('a comparison in the middle of which control dies is told as interrupted, and golden prompts are no traffic of callers', async () => {
  await using reference = await startEngine(deciding(() => 0));
  await using slow = await startEngine((x) => x.hang());
  const config: Config = {
    backends: { a: backendOf(reference), b: backendOf(slow) },
    routes: { chat: { targets: [{ backend: 'a' }], deadline: '30s' } },
  };
  await using armature = await started(config, 50);
  const waiting = armature.run('parity', 'run', 'a', 'b', '--golden', GOLDEN, '--json');
  await eventually('prompts at the slow engine', () => slow.posts.length > 0);
  armature.kill('control');
  const told = () => armature.events('parity-undecided').catch(() => []); // while control is away
  await eventually('the word on it', async () => (await told()).length === 1, 15_000);
  const { exitCode, stdout } = await waiting; // it waits for a control that comes back
  expect(exitCode).toBe(1);
  const shown = JSON.parse(stdout);
  expect(shown).toMatchObject({ state: 'ended', verdict: 'undecided', reason: 'run-interrupted' });
  expect(JSON.parse((await armature.run('parity', 'show', shown.id, '--json')).stdout)).toEqual(shown);
  expect(await armature.metric('armature_requests_total')).toBe(0);
});

test('a sentinel notices an engine that was changed while it serves, ends its certificate, and costs callers nothing', async () => {
  let flips = 0;
  await using steady = await startEngine(deciding(() => 0));
  await using changing = await startEngine(deciding(() => flips));
  const config: Config = {
    backends: { a: backendOf(steady), b: backendOf(changing) },
    routes: {
      chat: {
        targets: [{ backend: 'a' }, { backend: 'b' }],
        deadline: '30s',
        parity: { golden: GOLDEN, flipsMax: 0.2, require: 'flag' },
        sentinel: { golden: GOLDEN, every: '100ms', usual: 0.01, runLength: 20000 },
      },
    },
  };
  await using armature = await started(config, 25);
  const { exitCode, stderr } = await armature.run(
    ...['parity', 'run', 'a', 'b', '--golden', GOLDEN, '--flips-max', '0.2'],
  );
  expect(exitCode, stderr).toBe(0);
  const asked = (outcome: string) =>
    armature.metric('armature_sentinel_prompts_total', { outcome, backend: 'b' });
  await eventually('what it decides is frozen', async () => (await asked('answered')) >= 60, 20_000);
  expect(await armature.events('sentinel-noticed')).toEqual([]);

  flips = 0.5;
  await eventually('the notice', async () => (await armature.events('sentinel-noticed')).length > 0, 20_000);
  const noticed = (await armature.events('sentinel-noticed'))[0];
  expect(noticed).toMatchObject({
    subject: `endpoint:b|${changing.v1}`,
    data: { route: 'chat', backend: 'b', runLength: 20000 },
  });
  const since = noticed.data.count;
  expect(since).toBeLessThan(10);
  await eventually('the expiry', async () => (await armature.events('parity-expired')).length === 1);
  const [expired] = await armature.events('parity-expired');
  expect(expired.causes).toContain(noticed.id);
  expect((await armature.why(expired.id)).steps.map(({ code }: { code: string }) => code)).toContain(
    'sentinel-noticed',
  );
  // Health is not its business, and callers are not counted by it.
  expect(await armature.events('endpoint-unwell')).toEqual([]);
  expect(await armature.metric('armature_requests_total')).toBe(0);
  expect((await armature.chat()).status).toBe(200);
  await armature.idle();
});

test('without a sentinel nothing is sent', async () => {
  await using engine = await startEngine(deciding(() => 0));
  const config = { backends: { a: backendOf(engine) }, routes: { chat: { targets: [{ backend: 'a' }] } } };
  await using armature = await started(config, 5);
  expect((await armature.chat({ messages: [{ role: 'user', content: 'x' }] })).status).toBe(200);
  expect(engine.posts).toHaveLength(1);
});
