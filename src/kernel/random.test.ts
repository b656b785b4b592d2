import { describe, expect, it } from 'vitest';
import { replayedRandom, seededRandom } from './random.ts';

describe('random', () => {
  it('gives the same draws for the same seed, on every machine', () => {
    const random = seededRandom(1);
    const draws = [random.next(), random.next(), random.next()];
    expect(draws).toEqual([0.6270739405881613, 0.002735721180215478, 0.5274470399599522]);
  });

  it('draws evenly from 0 up to 1, 1 left out', () => {
    const random = seededRandom(42);
    const tenths = new Array(10).fill(0);
    for (let i = 0; i < 100_000; i++) tenths[Math.floor(random.next() * 10)]++;
    expect(tenths).toHaveLength(10);
    for (const count of tenths) expect(Math.abs(count - 10_000)).toBeLessThan(400);
  });

  it('replays draws, and refuses to invent one', () => {
    const random = replayedRandom([0.25, 0.5]);
    expect([random.next(), random.next()]).toEqual([0.25, 0.5]);
    expect(() => random.next()).toThrow('more often');
  });
});
