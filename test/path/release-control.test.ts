import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newestOfRelease } from '../../src/control/releases/newest.ts';
import { why } from '../../src/events/why.ts';
import { FILE, type File, ReleaseWorld } from './release-control-world.ts';

const CAPTURED = FILE.routes.chat.targets;

let world: ReleaseWorld;

beforeEach(async () => {
  world = new ReleaseWorld();
  await world.start();
});

afterEach(() => world[Symbol.dispose]());

const weights = () => Object.fromEntries(world.targets()!.map(({ backend, weight }) => [backend, weight]));

const edited = (change: (file: File) => void): void => {
  const file = structuredClone(FILE) as unknown as File;
  change(file);
  world.write(file);
};

test('a release is stored before it acts, divides sessions by its share, and is promoted', async () => {
  const { id } = await world.begin();
  expect(world.snapshot.releases).toEqual({ chat: { id, canary: 'next', share: 0 } });
  expect(world.targets()).toEqual(CAPTURED);

  await world.command(id, { do: 'share', share: 0.25 });
  expect(weights()).toEqual({ old: 67.5, older: 7.5, next: 25 });
  expect(world.snapshot.releases?.['chat']).toMatchObject({ share: 0.25 });
  expect(world.worker.snapshots.at(-1)).toMatchObject({ releases: { chat: { share: 0.25 } } });
  const origin = world.control.effective.origins['routes.chat.targets'];
  expect(origin).toMatchObject({ actor: 'armature', release: id });

  await world.command(id, { do: 'promote' });
  expect(weights()).toEqual({ next: 100, old: 0, older: 0 });
  expect(await world.surface.release(id)).toMatchObject({ state: 'running', phase: 'promoted', share: 1 });

  await world.time.advance(3 * 3600_000);
  expect(world.snapshot.releases).toBeUndefined();
  expect(weights()).toEqual({ next: 100, old: 0, older: 0 });
  expect(await world.surface.release(id)).toMatchObject({ state: 'promoted' });
  expect(await world.releaseEvents()).toEqual([
    'release-started',
    'release-decided',
    'release-share-changed',
    'release-decided',
    'release-promoted',
    'release-ended',
  ]);
});

test('a rollback restores what was captured of this route, and leaves the others as they are now (trap 8)', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'share', share: 0.5 });
  await world.control.change(
    '{ routes: { other: { targets: [{ backend: older }] }, chat: { deadline: 3s } } }',
    'operator',
  );
  await world.command(id, { do: 'roll-back' });
  expect(world.targets()).toEqual(CAPTURED);
  expect(world.targets('other')).toEqual([{ backend: 'older', weight: 1 }]);
  expect(world.snapshot.settings.routes['chat']?.deadline).toBe(3000);
  expect(world.snapshot.releases).toBeUndefined();
  const [back] = await world.events('release-rolled-back');
  expect(back?.data).toMatchObject({ route: 'chat', to: 'next', snapshot: world.snapshot.number });
  expect(back?.causes).toContain(world.snapshot.event);
});

test('the chain of causes goes from the rollback by its evidence to who began it, and to the defaults in the file', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'share', share: 0.5 });
  const evidence = await world.command(id, { do: 'roll-back' });
  const told = await world.within(why(world.ledger, id));
  const codes = told!.steps.map(({ code }) => code);
  for (const code of [
    'release-rolled-back',
    'snapshot-published',
    'configuration-changed',
    'release-decided',
  ])
    expect(codes).toContain(code);
  expect(told!.steps.some(({ figures }) => figures['event'] === evidence)).toBe(true);
  const began = told!.steps.find(({ code }) => code === 'release-started');
  expect(began?.figures['actor']).toBe('operator');
  expect(began?.origin).toMatchObject({ path: 'routes.chat.release', file: world.file });
  expect(codes.indexOf('release-rolled-back')).toBeLessThan(codes.indexOf('release-started'));
});

test('a rollback is told first, however much workers tell after it', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'share', share: 0.5 });
  await world.command(id, { do: 'roll-back' });
  for (let late = 0; late < 6; late++) await world.command(id, { do: 'hold' });
  const { store } = world.ledger;
  const related = (subject: string) => newestOfRelease(store, subject);
  const told = await world.within(why({ store, related, find: (event) => world.ledger.find(event, 0) }, id));
  const codes = told!.steps.map(({ code }) => code);
  expect(codes.filter((code) => code === 'release-rolled-back')).toHaveLength(1);
  expect(codes).toContain('release-started');
});

describe('is refused', () => {
  const refusal = (asked: object) =>
    world.surface
      .startRelease({ route: 'chat', to: 'next', ...asked }, 'operator')
      .catch((error: Error) => error.message);

  test.each([
    ['an unknown route', { route: 'chatt' }, "no route 'chatt'"],
    ['an unknown backend', { to: 'nexxt' }, "no backend 'nexxt'"],
    ['a backend that answers something else', { to: 'tensors' }, 'tensors'],
    ['a route that goes there alone already', { route: 'other', to: 'old' }, 'already'],
    ['a plan that does not rise', { plan: [5, 5, 100] }, 'larger'],
    ['a plan without an end', { plan: [5, 50] }, '100'],
    ['a setting that there is not', { plann: [5] }, 'plann'],
    ['a deadline that cannot hold the steps', { deadline: '1m' }, 'deadline'],
    ['a baseline that there is not', { baseline: 'none' }, 'none'],
    ['the canary as its own baseline', { baseline: 'next' }, 'itself'],
    ['answers compared by a route that there is not', { compare: { by: 'judge', route: 'none' } }, 'none'],
    ['a judge without a route', { compare: { by: 'judge' } }, 'none is named'],
    ['a load of no size', { stress: { duration: '1m' } }, 'how much load'],
  ])('%s', async (_what, asked, says) => {
    expect(await refusal(asked)).toContain(says);
    expect(await world.releaseEvents()).toEqual([]);
  });

  test('a second release of the same route, also while the first is being begun', async () => {
    const both = await Promise.allSettled([world.begin(), world.begin('old')]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(await refusal({})).toContain('under way');
  });

  test('a change by hand of targets that a release moves', async () => {
    const { id } = await world.begin();
    const change = () =>
      world.control.change('{ routes: { chat: { targets: [{ backend: old }] } } }', 'operator');
    await expect(change()).rejects.toThrow(id);
    await world.surface.abortRelease('chat', 'operator');
    await change();
    expect(world.targets()).toEqual([{ backend: 'old', weight: 1 }]);
  });
});

test('an abort with nothing in progress changes nothing, and says so (trap 7)', async () => {
  const before = world.snapshot.number;
  expect(await world.surface.abortRelease('chat', 'operator')).toMatchObject({ done: false, release: null });
  const { id } = await world.begin();
  expect(await world.surface.abortRelease('chat', 'operator')).toMatchObject({ done: true });
  const after = world.snapshot.number;
  const again = await world.surface.abortRelease(id, 'operator');
  expect(again).toMatchObject({ done: false, release: { id, state: 'rolled-back' } });
  await expect(world.surface.abortRelease('chatt', 'operator')).rejects.toThrow("release 'chatt'");
  expect(world.snapshot.number).toBe(after);
  expect(after).toBeGreaterThan(before);
});

test('an operator promotes it whatever the evidence, and takes it back while it is watched', async () => {
  const { id } = await world.begin();
  const promoted = await world.within(world.surface.promoteRelease('chat', 'token:ann'));
  expect(promoted).toMatchObject({ done: true, release: { id, phase: 'promoted' } });
  expect(weights()).toEqual({ next: 100, old: 0, older: 0 });
  const [told] = await world.events('release-promoted');
  expect(told).toMatchObject({
    actor: 'token:ann',
    data: { reason: { code: 'release-promoted-by-operator' } },
  });
  expect(await world.within(world.surface.abortRelease(id, 'token:ann'))).toMatchObject({ done: true });
  expect(world.targets()).toEqual(CAPTURED);
});

test('a control that follows goes on exactly where the one before it was', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'share', share: 0.5 });
  const before = { number: world.snapshot.number, releases: world.snapshot.releases };
  const told = await world.releaseEvents();
  world.kill();
  await world.start();
  await world.time.advance(5000);
  expect({ number: world.snapshot.number, releases: world.snapshot.releases }).toEqual(before);
  expect(await world.releaseEvents()).toEqual(told);

  world.kill();
  edited((file) => {
    file.routes['chat']!['targets'] = [{ backend: 'older' }];
  });
  await world.start();
  await world.time.advance(5000);
  expect(await world.surface.release(id)).toMatchObject({ overtaken: true, share: 0 });
  expect(weights()).toEqual({ older: 1 });
  await world.time.advance(2 * 3600_000);
  expect(await world.surface.release(id)).toMatchObject({ state: 'rolled-back' });
  expect(weights()).toEqual({ older: 1 });
});

describe('the file', () => {
  test('wins over the weights of a release, which is held, and goes on when the edit is taken back', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'share', share: 0.5 });
    edited((file) => {
      file.routes['chat']!['targets'] = [{ backend: 'older' }];
    });
    await world.control.reload();
    await world.time.advance(2000);
    expect(weights()).toEqual({ older: 1 });
    expect(world.snapshot.releases).toBeUndefined();
    expect(await world.surface.release(id)).toMatchObject({ state: 'running', overtaken: true });
    await expect(world.surface.promoteRelease('chat', 'operator')).rejects.toThrow('edited');
    await world.command(id, { do: 'share', share: 0.9 });
    expect(weights()).toEqual({ older: 1 });

    edited(() => undefined);
    await world.control.reload();
    await world.time.advance(3000);
    expect(weights()).toEqual({ old: 9, older: 1, next: 90 });
    expect(world.snapshot.releases?.['chat']?.share).toBe(0.9);
    expect(await world.releaseEvents()).toContain('release-resumed');
  });

  test('gives way to an abort, which stands over SIGHUP and a restart until the file agrees', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'share', share: 0.5 });
    edited((file) => {
      file.routes['chat']!['targets'] = [{ backend: 'next' }];
    });
    await world.control.reload();
    await world.time.advance(2000);
    expect(weights()).toEqual({ next: 1 });
    expect(await world.surface.abortRelease('chat', 'operator')).toMatchObject({ done: true });
    expect(world.targets()).toEqual(CAPTURED);

    await world.control.reload();
    expect(world.targets()).toEqual(CAPTURED);
    world.kill();
    await world.start();
    expect(world.targets()).toEqual(CAPTURED);
    expect(world.control.effective.overlays).toMatchObject([{ release: id, overFile: true }]);

    edited((file) => {
      file.routes['chat']!['targets'] = [
        { backend: 'older', weight: 10 },
        { backend: 'old', weight: 90 },
      ];
    });
    await world.control.reload();
    expect(world.control.effective.overlays).toEqual([]);
    expect(await world.events('overlay-agreed')).toHaveLength(1);
  });

  test('an edit that was not read yet does not overtake a rollback', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'share', share: 0.5 });
    edited((file) => {
      file.routes['chat']!['targets'] = [{ backend: 'next' }];
    });
    await world.command(id, { do: 'roll-back' });
    await world.control.reload();
    expect(world.targets()).toEqual(CAPTURED);
  });

  test('that says what the release says needs no overlay, and the release goes on', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'promote' });
    edited((file) => {
      file.routes['chat']!['targets'] = [{ backend: 'next' }];
    });
    await world.control.reload();
    await world.time.advance(2000);
    expect(world.control.effective.overlays).toEqual([]);
    expect(await world.surface.release(id)).toMatchObject({
      state: 'running',
      overtaken: false,
      phase: 'promoted',
    });
    expect(await world.surface.abortRelease('chat', 'operator')).toMatchObject({ done: true });
    expect(world.targets()).toEqual(CAPTURED);
  });

  test('without the backend of a release, or its route, ends it (trap 26)', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'share', share: 0.5 });
    edited((file) => delete file.backends['next']);
    await world.control.reload();
    await world.time.advance(2000);
    expect(world.targets()).toEqual(CAPTURED);
    expect(await world.surface.release(id)).toMatchObject({
      state: 'rolled-back',
      last: { code: 'release-backend-removed' },
    });

    edited(() => undefined);
    await world.control.reload();
    const second = await world.begin();
    await world.command(second.id, { do: 'share', share: 0.5 });
    edited((file) => delete file.routes['chat']);
    await world.control.reload();
    await world.time.advance(2000);
    expect(world.targets()).toBeUndefined();
    expect(await world.surface.release(second.id)).toMatchObject({ last: { code: 'release-route-removed' } });
  });
});

test('each phase has an end: what nobody says anything of is rolled back (traps 5, 18)', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'share', share: 0.5 });
  await world.time.advance(2 * 3600_000);
  expect(world.targets()).toEqual(CAPTURED);
  expect(await world.surface.release(id)).toMatchObject({ last: { code: 'release-deadline-passed' } });
});

test('a backend that is a target already begins at no share of its own, and has it again after a rollback', async () => {
  edited((file) => {
    file.routes['chat']!['targets'] = [
      { backend: 'old', weight: 95 },
      { backend: 'next', weight: 5 },
    ];
  });
  await world.control.reload();
  const { id } = await world.begin();
  await world.time.advance(3000);
  expect(await world.surface.release(id)).toMatchObject({ overtaken: false });
  await world.command(id, { do: 'share', share: 0.5 });
  expect(weights()).toEqual({ old: 50, next: 50 });
  await world.command(id, { do: 'roll-back' });
  expect(weights()).toEqual({ old: 95, next: 5 });
});

test('a machine that fails ends its release, and control goes on', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'share', share: 0.5 });
  await world.command(id, null as unknown as { do: 'hold' });
  expect(world.targets()).toEqual(CAPTURED);
  expect(await world.surface.release(id)).toMatchObject({ last: { code: 'release-not-judged' } });

  const { id: second } = await world.begin();
  await world.command(second, { do: 'share', share: 0.5 });
  world.kill();
  const [kept] = (await world.kept.documents.list('release', 10)).slice(-1);
  const body = { ...(kept!.body as object), machine: { unreadable: true } };
  await world.kept.documents.change([{ kind: 'release', id: second, body, on: kept!.revision }], []);
  await world.start();
  await world.time.advance(3000);
  expect(world.targets()).toEqual(CAPTURED);
  expect(await world.surface.release(second)).toMatchObject({ last: { code: 'release-not-judged' } });
});

test('evidence goes page by page, and not from the beginning where what it is to follow is no event', async () => {
  const { id } = await world.begin();
  const first = await world.command(id, { do: 'hold' });
  const second = await world.command(id, { do: 'hold' });
  const page = (after?: string) => world.surface.releaseEvidence(id, { limit: 1, after });
  expect(await page()).toMatchObject({ data: [{ event: first }], next: first });
  expect(await page(first)).toMatchObject({ data: [{ event: second }] });
  await expect(page('nope')).rejects.toThrow("no event 'nope'");
});
