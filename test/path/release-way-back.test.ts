import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { why } from '../../src/events/why.ts';
import { FILE, type File, ReleaseWorld } from './release-control-world.ts';

let world: ReleaseWorld;

beforeEach(async () => {
  world = new ReleaseWorld();
  await world.start();
});
afterEach(() => world[Symbol.dispose]());

/** What the file says is changed and read again, without any of these backends. */
async function without(backends: string[]): Promise<void> {
  const file: File = structuredClone(FILE);
  for (const backend of backends) delete file.backends[backend];
  file.routes = { chat: { ...file.routes['chat'], targets: [{ backend: 'next' }] } };
  world.write(file);
  await world.control.reload();
  await world.time.advance(2000);
}

const abort = () => world.within(world.surface.abortRelease('chat', 'operator'));

describe('an abort after the file has lost backends that it would go back to', () => {
  test('goes back to the others at once, and tells of those that are gone', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'promote' });
    await without(['old']);
    expect(await abort()).toMatchObject({ done: true, message: 'Rolled back.' });
    expect(world.targets()).toEqual([{ backend: 'older', weight: 1 }]);
    const [back] = await world.events('release-rolled-back');
    expect(back!.data).toMatchObject({ removed: 'old' });
    expect(back!.data).not.toHaveProperty('unready');
  });

  test('is over where none is left, and does not say that it went back', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'promote' });
    await without(['old', 'older']);
    const outcome = await abort();
    const left = 'of what the route had there is nothing any more: old, older';
    expect(outcome).toMatchObject({ done: false, release: { state: 'rolled-back', left } });
    expect(outcome.message).toBe(`It is over, but the targets of the file stay: ${left}.`);
    expect(world.targets()).toEqual([{ backend: 'next', weight: 1 }]);
    expect(world.snapshot.releases).toBeUndefined();
  });
});

test('a promotion that was made is done when it is asked for again, and one on its way back is not', async () => {
  const { id } = await world.begin();
  await world.command(id, { do: 'promote' });
  const again = await world.within(world.surface.promoteRelease('chat', 'operator'));
  expect(again).toMatchObject({ done: true, message: 'It has all of the traffic already.' });
  await abort();
  const late = await world.within(world.surface.promoteRelease(id, 'operator'));
  expect(late).toMatchObject({ done: false, release: { state: 'rolled-back' } });
});

test('what became of a release before it is not among its causes', async () => {
  const { id: first } = await world.begin();
  await world.command(first, { do: 'share', share: 0.5 });
  await abort();
  const { id } = await world.begin();
  await world.command(id, { do: 'roll-back' });
  const told = await world.within(why(world.ledger, id));
  const subjects = new Set(told!.steps.map(({ figures }) => figures['subject']));
  expect(told!.steps.filter(({ code }) => code === 'release-started')).toHaveLength(1);
  expect(subjects.has(`release:${first}`)).toBe(false);
});
