import { describe, expect, it } from 'vitest';
import { playWorld } from './play.ts';
import { planWorld } from './world.ts';

/**
 * The whole path in virtual time, in worlds that are drawn from a seed. `ARMATURE_WORLDS=20000` plays so many,
 * `ARMATURE_WORLDS_FROM=N` begins at another seed.
 */
const COUNT = Number(process.env['ARMATURE_WORLDS'] ?? 300);
const FROM = Number(process.env['ARMATURE_WORLDS_FROM'] ?? 1);
const CHUNK = 20;

describe('whatever happens', () => {
  for (let from = FROM; from < FROM + COUNT; from += CHUNK) {
    const to = Math.min(from + CHUNK, FROM + COUNT);
    it(`what must hold holds in the worlds ${from} to ${to - 1}`, () => {
      for (let seed = from; seed < to; seed++) expect(wrongIn(seed), replayOf(seed)).toEqual([]);
    });
  }

  it('is the same again for the same seed', () => {
    const twice = [7, 7].map((seed) => {
      const { callers } = playWorld(planWorld(seed));
      return callers.map(({ status, firstAt, endedAt }) => ({ status, firstAt, endedAt }));
    });
    expect(twice[0]!.length).toBeGreaterThan(0);
    expect(twice[0]).toEqual(twice[1]);
  });
});

function wrongIn(seed: number): string[] {
  try {
    return playWorld(planWorld(seed)).wrong;
  } catch (error) {
    return [(error as Error).stack ?? String(error)];
  }
}

function replayOf(seed: number): string {
  return `world ${seed}; play it again: node test/worlds/replay.ts --seed ${seed}`;
}
