import { describe, expect, it } from 'vitest';
import { type Random, seededRandom } from '../../kernel/random.ts';
import { NumericReference } from './numeric-reference.ts';
import { marginsFor, RankBets } from './rank-bets.ts';

const TARGET = 10_000;

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** Rows until the alarm, or `max` where there is none by then. */
function run(seed: number, referenceRows: number, draw: (random: Random) => number, max: number): number {
  const random = seededRandom(seed * 7919 + 13);
  const reference = new NumericReference(Float32Array.from({ length: referenceRows }, () => normal(random)));
  const bets = new RankBets(marginsFor(referenceRows));
  for (let row = 1; row <= max; row++) {
    bets.observe(reference.rank(draw(random), random.next()));
    if (bets.stakes.evidence >= TARGET) return row;
  }
  return max;
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;

describe('bets on ranks', () => {
  it('alarm no sooner than the target of 10,000 rows on average while nothing changes, over 200 streams', () => {
    const runs = Array.from({ length: 200 }, (_, seed) => run(seed, 1000, normal, 20_000));
    expect(runs.reduce((sum, rows) => sum + rows, 0) / runs.length).toBeGreaterThanOrEqual(TARGET);
    expect(runs.filter((rows) => rows < TARGET).length).toBeLessThanOrEqual(2);
  });

  it('notice changes within 1.2 times the delays of the reference', () => {
    for (const [rows, shift, scale, delay] of [
      [1000, 0.25, 1, 818],
      [1000, 0.5, 1, 159],
      [1000, 1, 1, 66],
      [1000, 0, 1.5, 223],
      [20_000, 0.25, 1, 403],
      [20_000, 0.5, 1, 128],
      [20_000, 1, 1, 60],
      [20_000, 0, 1.5, 167],
    ] as const) {
      const delays = Array.from({ length: 101 }, (_, seed) =>
        run(seed, rows, (random) => shift + scale * normal(random), 20_000),
      );
      expect({ rows, shift, scale, inTime: median(delays) <= 1.2 * delay }).toEqual({
        rows,
        shift,
        scale,
        inTime: true,
      });
    }
  });

  it('say which way, and about since when', () => {
    const random = seededRandom(5);
    const reference = new NumericReference(Float32Array.from({ length: 1000 }, () => normal(random)));
    const bets = new RankBets(marginsFor(1000));
    const see = (value: number) => bets.observe(reference.rank(value, random.next()));
    for (let row = 0; row < 3000; row++) see(normal(random));
    for (let row = 0; row < 200; row++) see(normal(random) / 3);
    expect(bets.direction).toBe('narrower');
    expect(bets.stakes.since).toBeGreaterThan(150);
    expect(bets.stakes.since).toBeLessThan(600);
  });

  it('tell what has moved, however far, from what is wider', () => {
    for (const [shift, scale, direction] of [
      [0.5, 1, 'higher'],
      [2, 1, 'higher'],
      [5, 1, 'higher'],
      [-2, 1, 'lower'],
      [-5, 1, 'lower'],
      [0, 1.5, 'wider'],
      [0, 10, 'wider'],
    ] as const) {
      for (let seed = 0; seed < 101; seed++) {
        const random = seededRandom(seed * 7919 + 13);
        const reference = new NumericReference(Float32Array.from({ length: 1000 }, () => normal(random)));
        const bets = new RankBets(marginsFor(1000));
        const see = (value: number) => bets.observe(reference.rank(value, random.next()));
        for (let row = 0; row < 300; row++) see(normal(random));
        while (bets.stakes.evidence < TARGET) see(shift + scale * normal(random));
        expect({ shift, scale, direction: bets.direction }).toEqual({ shift, scale, direction });
      }
    }
  });

  it('take margins of the reference between the sizes that were measured', () => {
    expect(marginsFor(1000)).toEqual({ place: 0.0262, spread: 0.0272 });
    expect(marginsFor(2000).place).toBeGreaterThan(0.0107);
    expect(marginsFor(2000).place).toBeLessThan(0.0262);
    expect(marginsFor(80_000).place).toBeCloseTo(0.003, 6);
    expect(marginsFor(125).spread).toBeCloseTo(0.0704, 6);
  });

  it('trap 36: cannot alarm on 8 rows, whatever they are', () => {
    const bets = new RankBets(marginsFor(1000));
    for (let row = 0; row < 8; row++) bets.observe(0.9999);
    expect(bets.stakes.evidence).toBeLessThan(TARGET);
  });

  it('break ties by chance: a constant that stays so is no change', () => {
    const random = seededRandom(6);
    const reference = new NumericReference(new Float32Array(1000).fill(3));
    const bets = new RankBets(marginsFor(1000));
    for (let row = 0; row < 10_000; row++) {
      bets.observe(reference.rank(3, random.next()));
      expect(bets.stakes.evidence).toBeLessThan(TARGET);
    }
  });
});
