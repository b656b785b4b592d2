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
  const unread = await run(
    control,
    ...['decide', 'add', '--engine', 'x', '--hardware', 'y', '--version', 'z', '--for', 'far'],
    ...['--why', 'w', '--by', 'b', '--evidence', files.folder],
  );
  expect([unread.code, unread.notes]).toEqual([2, expect.stringContaining('cannot be read')]);
});
