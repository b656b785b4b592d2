import { describe, expect, test } from 'vitest';
import { dyingStore, FILE, ReleaseWorld } from './release-control-world.ts';

const CAPTURED = FILE.routes.chat.targets;

describe('control dies at any write, and the one that follows ends what was begun', () => {
  const run = async (dies: { at: number; made: boolean }) => {
    using other = new ReleaseWorld();
    const store = dyingStore(other.kept, dies);
    await other.start(store).catch(() => undefined);
    let id = '';
    try {
      ({ id } = await other.begin());
    } catch {
      // It died while it was begun.
    }
    if (id !== '') {
      await other.command(id, { do: 'share', share: 0.25 });
      await other.command(id, { do: 'promote' });
      await other.command(id, { do: 'roll-back' });
    }
    const { writes } = store;
    other.kill();
    await other.start();
    const begun = (await other.events('release-started'))[0]?.subject.slice('release:'.length);
    await other.time.advance(5000);
    // Where it died before the command was read: the ledger has it still.
    const ends = {
      targets: other.targets(),
      releases: other.snapshot.releases,
      overlays: await other.kept.overlays.list(),
    };
    const told = await other.releaseEvents();
    const document = begun === undefined ? undefined : await other.surface.release(begun);
    return { writes, ends, told, state: document?.state, commanded: id !== '' };
  };

  test.each([true, false])('the write is made: %s', async (made) => {
    const { writes: total } = await run({ at: Number.POSITIVE_INFINITY, made });
    expect(total).toBeGreaterThan(8);
    for (let at = 2; at <= total; at++) {
      const { ends, told, state, commanded } = await run({ at, made });
      const about = `${at} of ${total}: ${told.join(' ')}`;
      expect(ends.targets, about).toEqual(CAPTURED);
      if (!commanded) continue;
      expect(state, about).toBe('rolled-back');
      expect(ends.releases, about).toBeUndefined();
      expect(ends.overlays, about).toEqual([]);
      expect(
        told.filter((type) => type === 'release-rolled-back'),
        about,
      ).toHaveLength(1);
      expect(told.filter((type) => type === 'release-share-changed').length, about).toBeLessThanOrEqual(1);
    }
  });
});
