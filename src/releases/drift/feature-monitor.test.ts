import { describe, expect, it } from 'vitest';
import { type Random, seededRandom } from '../../kernel/random.ts';
import type { FeatureType, Finding, Value } from './contracts.ts';
import { FeatureMonitor, type FeatureSettings } from './feature-monitor.ts';

const settings = (type: FeatureType, more: Partial<FeatureSettings> = {}): FeatureSettings => ({
  name: 'x',
  type,
  rows: 1000,
  targetRunLength: 10_000,
  movedMin: 0.05,
  ...more,
});

const normal = (random: Random) =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
const category = (random: Random) => ['en', 'de', 'fr', 'es'][Math.floor(4 * random.next() ** 2)]!;
const vector = (random: Random) => Array.from({ length: 8 }, () => normal(random));

/** Feeds rows; gives the finding, and after how many rows. */
function feed(monitor: FeatureMonitor, random: Random, rows: number, draw: (row: number) => Value) {
  for (let row = 1; row <= rows; row++) {
    const found: Finding | undefined = monitor.observe(draw(row), row, random);
    if (found) return { ...found, after: row };
  }
  return undefined;
}

function watching(type: FeatureType, draw: (random: Random) => Value, more: Partial<FeatureSettings> = {}) {
  const random = seededRandom(11);
  const monitor = new FeatureMonitor(settings(type, more));
  expect(feed(monitor, random, more.rows ?? 1000, () => draw(random))).toBeUndefined();
  expect(monitor.isFrozen).toBe(true);
  return { random, monitor };
}

describe('one feature', () => {
  it.each([
    ['numeric', normal],
    ['categorical', category],
    ['vector', vector],
  ] as const)(
    'trap 43: the same %s distribution is no change, on average for 10,000 rows or more',
    (type, draw) => {
      const runs = Array.from({ length: 40 }, (_, seed) => {
        const random = seededRandom(seed + 100);
        const monitor = new FeatureMonitor(settings(type, { movedMin: 0 }));
        return feed(monitor, random, 13_000, () => draw(random))?.after ?? 13_000;
      });
      expect(runs.reduce((sum, rows) => sum + rows, 0) / runs.length - 1000).toBeGreaterThanOrEqual(10_000);
    },
  );

  it('trap 36: 8 rows, and a whole window of them, are too few for an alarm', () => {
    const { monitor, random } = watching('numeric', normal);
    expect(feed(monitor, random, 8, () => 1e9)).toBeUndefined();
    expect(feed(monitor, random, 8, () => null)).toBeUndefined();
    const early = new FeatureMonitor(settings('numeric'));
    expect(feed(early, random, 8, (row) => (row > 4 ? 1e9 : 0))).toBeUndefined();
  });

  it('trap 37: a change that is certain and small is counted and not told', () => {
    const { monitor, random } = watching('numeric', normal, { rows: 5000, movedMin: 0.2 });
    expect(feed(monitor, random, 20_000, () => normal(random) + 0.12)).toBeUndefined();
    expect(monitor.report(random).small).toBeGreaterThan(0);
    expect(feed(monitor, random, 2000, () => normal(random) + 1)).toMatchObject({
      change: 'distribution',
      direction: 'higher',
    });
  });

  it('traps 38 and 39: an empty, an all-null and a retyped column are outcomes, and no crash', () => {
    const random = seededRandom(1);
    expect(new FeatureMonitor(settings('numeric')).report(random).state).toBe('learning');
    const allNull = new FeatureMonitor(settings('numeric'));
    expect(feed(allNull, random, 3000, () => null)).toBeUndefined();
    expect(allNull.report(random)).toMatchObject({ state: 'empty', rows: 2000, window: undefined });
    expect(feed(allNull, random, 1000, () => 1)).toMatchObject({ change: 'nulls', direction: 'less' });
    const { monitor } = watching('numeric', normal);
    const retyped = feed(monitor, random, 1000, () => 'a text');
    expect(retyped).toMatchObject({ change: 'type', direction: 'more' });
    expect(retyped!.after).toBeLessThan(30);
  });

  it('trap 40: a rate of nulls is found by itself, and moves no distribution', () => {
    const { monitor, random } = watching('numeric', (draw) => (draw.next() < 0.02 ? null : normal(draw)));
    const found = feed(monitor, random, 2000, () => (random.next() < 0.2 ? null : normal(random)));
    expect(found).toMatchObject({ change: 'nulls', direction: 'more' });
    expect(
      monitor.report(random).watches.find(({ change }) => change === 'distribution')!.evidence,
    ).toBeLessThan(100);
  });

  it('trap 41: the type that is stated holds, however few different values there are', () => {
    const few = watching('numeric', (draw) => Math.floor(3 * draw.next()));
    expect(few.monitor.report(few.random).type).toBe('numeric');
    expect(feed(few.monitor, few.random, 500, () => 2 + Math.floor(3 * few.random.next()))).toMatchObject({
      change: 'distribution',
      direction: 'higher',
    });
    const many = watching('categorical', (draw) => Math.floor(5000 * draw.next()));
    expect(many.monitor.report(many.random).type).toBe('categorical');
    expect(
      feed(many.monitor, many.random, 5000, () => Math.floor(5000 * many.random.next())),
    ).toBeUndefined();
  });

  it('tells a constant that begins to vary, not for one row in 200, and what varied and stands still', () => {
    const constant = watching('numeric', () => 7);
    expect(
      feed(constant.monitor, constant.random, 10_000, (row) => (row % 200 === 0 ? 7.1 : 7)),
    ).toBeUndefined();
    expect(
      feed(constant.monitor, constant.random, 1000, () => (constant.random.next() < 0.1 ? 7.1 : 7)),
    ).toMatchObject({ change: 'varying' });
    const varying = watching('numeric', normal);
    expect(feed(varying.monitor, varying.random, 100, () => 0.01)).toMatchObject({ change: 'constant' });
  });

  it('finds a category that comes more often, one that was never seen, and one that alone is left', () => {
    const more = watching('categorical', category);
    expect(
      feed(more.monitor, more.random, 3000, () => (more.random.next() < 0.3 ? 'es' : category(more.random))),
    ).toMatchObject({
      change: 'distribution',
      direction: 'more es',
      effect: { category: 'es' },
    });
    const unseen = watching('categorical', category);
    expect(
      feed(unseen.monitor, unseen.random, 3000, () =>
        unseen.random.next() < 0.05 ? 'pl' : category(unseen.random),
      ),
    ).toMatchObject({ change: 'unseen' });
  });

  it('finds embeddings that move along no axis of the reference', () => {
    const { monitor, random } = watching('vector', vector);
    const found = feed(monitor, random, 3000, () => vector(random).map((each) => each + 0.7));
    expect(found).toMatchObject({ change: 'distribution' });
    expect(found!.after).toBeLessThan(500);
  });

  it.each([
    ['numeric', normal],
    ['categorical', (random: Random) => `${random.next()}`.padEnd(10_000, 'x')],
    ['vector', (random: Random) => Array.from({ length: 16 }, () => normal(random))],
  ] as const)('keeps a bounded amount, whatever comes: %s', (type, draw) => {
    const random = seededRandom(9);
    const cycle = { lengthMs: 1000, count: 7 };
    const monitor = new FeatureMonitor(settings(type, { rows: 5000, cycle }));
    for (let row = 0; row < 12_500; row++) monitor.observe(draw(random), row, random);
    expect(monitor.isFrozen).toBe(true);
    expect(JSON.stringify(monitor).length).toBeLessThan(64 * 1024);
  });

  it.each([
    ['numeric', normal],
    ['categorical', category],
    ['vector', vector],
  ] as const)('goes on after a restart as if there had been none: %s', (type, draw) => {
    for (const keptAt of [300, 700, 1500]) {
      const random = seededRandom(21);
      let monitor = new FeatureMonitor(settings(type));
      const straight = new FeatureMonitor(settings(type));
      const twin = seededRandom(21);
      for (let row = 0; row < 2500; row++) {
        if (row === keptAt) {
          const text = JSON.stringify(monitor);
          expect(text.length).toBeLessThan(256 * 1024);
          monitor = new FeatureMonitor(settings(type));
          monitor.restore(JSON.parse(text));
        }
        const shifted = (value: Value) => (row > 1200 && typeof value === 'number' ? value + 0.3 : value);
        const found = monitor.observe(shifted(draw(random)), row, random);
        expect(found).toEqual(straight.observe(shifted(draw(twin)), row, twin));
      }
      expect(monitor.report(random).watches).toEqual(straight.report(twin).watches);
    }
  });
});
