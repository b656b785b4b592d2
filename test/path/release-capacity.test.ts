import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FILE, ReleaseWorld } from './release-control-world.ts';

const CAPTURED = FILE.routes.chat.targets;

let world: ReleaseWorld;

beforeEach(async () => {
  world = new ReleaseWorld();
  await world.start();
});

afterEach(() => world[Symbol.dispose]());

describe('capacity comes before weight (traps 9, 19)', () => {
  test('hosts of what it goes to and of what it goes back to run on while it is under way', async () => {
    const needed = () => Object.keys(FILE.backends).filter((backend) => world.releases.needs(backend));
    await world.begin('simulated', { baseline: 'next' });
    expect(needed()).toEqual(['old', 'older', 'next', 'simulated']);
    await world.within(world.surface.abortRelease('chat', 'operator'));
    expect(needed()).toEqual([]);
  });

  test('a canary whose host does not serve yet gets no share, and an abort does not wait for it', async () => {
    const { id } = await world.begin('simulated');
    await world.command(id, { do: 'share', share: 0.5 });
    expect(world.targets()).toEqual(CAPTURED);
    await world.time.advance(61_000);
    expect(world.targets()).toEqual(CAPTURED);
    expect(await world.surface.release(id)).toMatchObject({ stuck: expect.stringContaining('simulated') });
    const aborted = world.surface.abortRelease('chat', 'operator');
    expect(await world.within(aborted)).toMatchObject({ done: true });
  });

  test.each(['evidence', 'an operator'])(
    'a way back, by %s, wakes the host that has stopped, and the canary keeps its weight until that serves',
    async (by) => {
      const file = { ...FILE, routes: { chat: { targets: [{ backend: 'simulated' }] } } };
      using stopping = new ReleaseWorld({ file });
      await stopping.start();
      const stop = stopping.host('simulated', 'http://near/v1');
      const { id } = await stopping.begin();
      await stopping.command(id, { do: 'share', share: 0.5 });
      stop();
      const wake = vi.spyOn(stopping.control.idle, 'wake');
      if (by === 'evidence') await stopping.command(id, { do: 'roll-back' });
      else void stopping.surface.abortRelease('chat', 'operator');
      await stopping.time.advance(40_000);
      expect(stopping.targets()).toMatchObject([
        { backend: 'simulated', weight: 50 },
        { backend: 'next', weight: 50 },
      ]);
      const decided = (await stopping.events('release-decided')).at(-1)!;
      expect(wake.mock.calls).toEqual([['simulated', decided.id, id]]);
      stopping.host('simulated', 'http://near/v1');
      await stopping.time.advance(1_000);
      expect(stopping.targets()).toEqual([{ backend: 'simulated', weight: 1 }]);
      expect(stopping.snapshot.endpoints['simulated']).toEqual(['http://near/v1']);
      expect(await stopping.surface.release(id)).toMatchObject({ state: 'rolled-back' });
      const [back] = await stopping.events('release-rolled-back');
      expect(back!.data).not.toHaveProperty('unready');
    },
  );

  test('the only healthy copy stays where what it replaced is unwell, save by an operator (traps 14, 17)', async () => {
    const { id } = await world.begin();
    await world.command(id, { do: 'share', share: 0.5 });
    const unwell = { 'old|http://old/v1': 'unwell', 'older|http://older/v1': 'unwell' } as const;
    Object.defineProperty(world.control.health, 'known', { value: unwell });
    await world.command(id, { do: 'roll-back' });
    await world.time.advance(120_000);
    expect(world.targets()!.find(({ backend }) => backend === 'next')!.weight).toBe(50);
    expect(await world.surface.release(id)).toMatchObject({ stuck: expect.stringContaining('only copy') });
    const aborted = world.surface.abortRelease('chat', 'operator');
    await world.time.advance(120_000);
    expect(await aborted).toMatchObject({ done: true });
    expect(world.targets()).toEqual(CAPTURED);
  });
});
