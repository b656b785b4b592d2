import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { gguf } from '../registry/model-files.ts';
import { ControlProcess } from './control-process.ts';
import { config, Files, run } from './registry-command.ts';

let files: Files;
beforeEach(() => {
  files = new Files();
});
afterEach(() => rmSync(files.folder, { recursive: true }));

test('decisions are linked to versions and found by why', async () => {
  await using control = await ControlProcess.start(config({}));
  const bench = files.write('bench.json', '{"requestsPerSecond": 12}');
  const first = await run(
    control,
    ...['decide', 'add', '--engine', 'vllm 0.11', '--hardware', 'nvidia-h100', '--version', 'v1'],
    ...[
      '--for',
      'far',
      '--for',
      'backend:far',
      '--why',
      'It answers in half the time.',
      '--by',
      'ann',
      '--json',
    ],
    ...['--evidence', bench, '--evidence', 'https://example.com/prices'],
  );
  expect(first.last).toMatchObject({
    for: ['backend:far'],
    by: 'ann',
    actor: 'operator',
    evidence: [{ kind: 'file', content: { requestsPerSecond: 12 } }, { kind: 'url' }],
  });
  const { id, event } = first.last;
  const manifest = { decisions: [id] };
  const added = await run(control, ...files.version('m', { 'm.gguf': gguf({}) }, manifest), '--json');
  const why = async (what: string) =>
    (await run(control, 'why', what, '--json')).last.steps.map((step: { code: string }) => step.code);
  // The version follows from the decision.
  expect(await why('m@1')).toEqual(['version-added', 'stack-decided']);
  expect(added.code).toBe(0);
  const second = await run(
    control,
    ...['decide', 'add', '--engine', 'sglang', '--hardware', 'amd-mi300x', '--version', 'm@1'],
    ...['--for', 'route:chat', '--why', 'Cheaper.', '--by', 'bob', '--evidence', id, '--json'],
  );
  expect(await why(second.last.id)).toEqual(['stack-decided', 'version-added', 'stack-decided']);
  // Of the route and the backend, which have said nothing themselves.
  expect(await why('chat')).toContain('stack-decided');
  await control.change('PUT', '/api/v1/config', { backends: { far: { version: 'm@1' } } });
  expect(await why('backend:far')).toEqual(expect.arrayContaining(['version-added', 'stack-decided']));
  const { decisions } = (await run(control, 'decide', 'ls', '--json')).last;
  expect(decisions).toHaveLength(2);
  // What files hold is large: it is shown of one decision, and not in lists.
  const [listed] = decisions[0].evidence;
  expect(listed).toMatchObject({ kind: 'file', sha256: expect.any(String) });
  expect(listed).not.toHaveProperty('content');
  expect((await run(control, 'decide', 'show', id, '--json')).last).toEqual(first.last);
  expect((await run(control, 'decide', 'show', id)).text).toContain('It answers in half the time.');
  expect((await control.events('stack-decided'))[0]).toMatchObject({ id: event, subject: `decision:${id}` });
  const lost = await run(
    control,
    ...['decide', 'add', '--engine', 'x', '--hardware', 'y', '--version', 'z', '--for', 'nobody'],
    ...['--why', 'w', '--by', 'b'],
  );
  expect(lost.notes).toContain("There is no route, backend or model 'nobody'");
  for (const place of [files.folder, '/dev/zero']) {
    const unread = await run(
      control,
      ...['decide', 'add', '--engine', 'x', '--hardware', 'y', '--version', 'z', '--for', 'far'],
      ...['--why', 'w', '--by', 'b', '--evidence', place],
    );
    expect([unread.code, unread.notes]).toEqual([2, expect.stringContaining('cannot be read')]);
  }
});

test('decisions and manifests lead to one another, by number and by alias', async () => {
  await using control = await ControlProcess.start(config({}));
  const decide = async (version: string, ...more: string[]) =>
    (
      await run(
        control,
        ...['decide', 'add', '--engine', 'vllm', '--hardware', 'nvidia-h100', '--version', version],
        ...['--for', 'chat', '--why', 'Cheaper.', '--by', 'ann', '--json', ...more],
      )
    ).last;
  const steps = async (what: string) => {
    const told = (await run(control, 'why', what, '--json')).last.steps;
    return told.map(({ figures }: { figures: { subject: string } }) => figures.subject);
  };
  const before = await decide('v1');
  const manifest = { decisions: [before.id] };
  for (const name of ['a', 'b'])
    await run(control, ...files.version('m', { 'm.gguf': gguf({ 'general.name': name }) }, manifest));
  const after = await decide('m@2');
  // From the decision to the manifests that name it, though it was there before them.
  expect(await steps(before.id)).toEqual(['version:m@2', 'version:m@1', `decision:${before.id}`]);
  // From the version to the decision that its manifest names, and to the one that chose it.
  expect(await steps('m@2')).toEqual([`decision:${after.id}`, 'version:m@2', `decision:${before.id}`]);
  expect(await steps('version:m@1')).toEqual(['version:m@1', `decision:${before.id}`]);
  expect(await steps(after.id)).toEqual([`decision:${after.id}`, 'version:m@2', `decision:${before.id}`]);
  // The same by an alias, with what moved it there.
  await run(control, 'registry', 'alias', 'm', 'production', '2');
  expect(await steps('m@production')).toEqual([
    'version:m@2',
    `decision:${after.id}`,
    'version:m@2',
    `decision:${before.id}`,
  ]);
  const shown = (await run(control, 'registry', 'show', 'm@production')).text;
  expect(shown).toContain(`decisions: ["${before.id}"]`);
  // A version that is gone is told no more.
  expect((await run(control, 'registry', 'rm', 'm@1')).code).toBe(0);
  expect(await steps(before.id)).toEqual(['version:m@2', `decision:${before.id}`]);
  expect((await run(control, 'why', 'm@staging')).code).toBe(1);
});
