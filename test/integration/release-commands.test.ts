import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ControlProcess } from './control-process.ts';
import { config, run } from './registry-command.ts';

/** What the commands of releases say where there is nothing to do, or what was asked makes no sense. */

let control: ControlProcess;
beforeAll(async () => {
  const { backends, ...others } = config({});
  control = await ControlProcess.start({ ...others, backends: { ...backends, next: backends.far } });
});
afterAll(() => control[Symbol.asyncDispose]());

const release = (...argv: string[]) => run(control, 'release', ...argv);

describe('a start', () => {
  it.each([
    [['--plan', '0,100'], 'plan[0]: expected a percentage above 0 and of at most 100'],
    [['--plan', '5,1,100'], 'each step has to be larger'],
    [['--deadline', '24'], 'deadline: expected a duration such as 450ms, 2s or 24h'],
    [['--alpha', '2', '--shadow', '200'], 'alpha: expected a share above 0 and below 1'],
    [['--alpha', '2', '--shadow', '200'], 'shadow: expected a percentage of 0 to 100'],
  ])('with %j is asked wrongly: exit 2, each fault with its place, in a line', async (flags, fault) => {
    const { code, notes } = await release('start', 'chat', '--to', 'next', ...flags);
    expect([code, notes.split('\n').length]).toEqual([2, 1]);
    expect(notes).toContain(fault);
  });
});

it('a route that is retired has nobody to release to', async () => {
  const retired = (value: true | null) =>
    control.change('PUT', '/api/v1/config', { routes: { chat: { retired: value } } });
  await retired(true);
  const { code, notes } = await release('start', 'chat', '--to', 'next');
  expect([code, notes]).toEqual([1, expect.stringContaining("'chat' is retired and answers nobody")]);
  expect((await retired(null)).status).toBe(200);
});

describe('with nothing in progress', () => {
  it('an abort has nothing to take back, which is no failure', async () => {
    const { code, last } = await release('abort', 'chat', '--json');
    expect([code, last]).toEqual([0, expect.objectContaining({ done: false, release: null })]);
  });

  it('a promotion promotes nothing, which is one', async () => {
    const { code, last } = await release('promote', 'chat', '--json');
    expect([code, last]).toEqual([1, expect.objectContaining({ done: false, release: null })]);
  });
});

describe('status of a route', () => {
  it('that never had a release is none, and no failure', async () => {
    const { code, last } = await release('status', 'chat', '--json');
    expect([code, last]).toEqual([0, { releases: [] }]);
    const said = await release('status', 'chat');
    expect([said.code, said.notes]).toEqual([0, expect.stringContaining('release start chat --to BACKEND')]);
  });

  it('that there is not is a failure', async () => {
    const { code, notes } = await release('status', 'chta');
    expect([code, notes]).toEqual([1, expect.stringContaining("There is no route 'chta'")]);
  });
});
