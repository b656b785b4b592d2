import { describe, expect, it } from 'vitest';
import { type Random, seededRandom } from '../../kernel/random.ts';
import type { FeatureType, Value } from './contracts.ts';
import { FeatureMonitor } from './feature-monitor.ts';

/** What is shown of the last rows beside what a window of that size shows of no change, where others alarm by it. */

const REFERENCE = 1000;
const ROWS = 512;
const STREAMS = 40;

const normal = (random: Random) =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
/** Categories of 1.5 % and 0.5 % beside those that are frequent. */
const rare = (random: Random) => {
  const draw = random.next();
  return draw < 0.005 ? 'a' : draw < 0.02 ? 'b' : draw < 0.6 ? 'c' : 'd';
};

/** The window after so many rows of its own, and whether something was told by then. */
function windowOf(
  type: FeatureType,
  seed: number,
  {
    before,
    now,
    rows = ROWS,
  }: { before: (random: Random) => Value; now(random: Random, row: number): Value; rows?: number },
) {
  const random = seededRandom(seed);
  const settings = { name: 'x', type, rows: REFERENCE, targetRunLength: 10_000, movedMin: 0 };
  const monitor = new FeatureMonitor(settings);
  while (!monitor.isFrozen) monitor.observe(before(random), 0, random);
  let told = false;
  for (let row = 0; row < rows; row++)
    told = monitor.observe(now(random, row), 0, random) !== undefined || told;
  return { window: monitor.report(random).window!, told };
}

const share = (of: readonly boolean[]) => of.filter(Boolean).length / of.length;

describe('the window that is shown', () => {
  it('has bins of the reference: one value far off hides no shift of half a standard deviation', () => {
    const shifted = (far: number) =>
      windowOf('numeric', 3, {
        before: normal,
        now: (random, row) => (row === 100 ? far : 0.5 + normal(random)),
      });
    const [near, far] = [shifted(0.5), shifted(10_000)];
    expect(near.window['psi']).toBeGreaterThan(0.15);
    expect(near.window['psi']).toBeGreaterThan(3 * near.window['psiCritical']!);
    expect(Math.abs(far.window['psi']! - near.window['psi']!)).toBeLessThan(0.02);
    expect(far.window['kolmogorovSmirnovP']).toBeLessThan(1e-6);
    expect(far.told).toBe(true);
  });

  it('shows of numbers that are as they were no more than it says is usual', () => {
    const windows = Array.from({ length: STREAMS }, (_, seed) =>
      windowOf('numeric', seed, { before: normal, now: normal, rows: 100 }),
    );
    // Read once, each is beyond its bound in about one of 20 cases.
    expect(share(windows.map(({ window }) => window['psi']! > window['psiCritical']!))).toBeLessThanOrEqual(
      0.15,
    );
    expect(share(windows.map(({ window }) => window['kolmogorovSmirnovP']! < 0.05))).toBeLessThanOrEqual(
      0.15,
    );
    expect(
      share(windows.map(({ window }) => window['wasserstein']! > window['wassersteinUnchanged']!)),
    ).toBeLessThanOrEqual(0.2);
    // The rule of thumb is a test of the sample's size.
    expect(share(windows.map(({ window }) => window['psi']! > 0.1))).toBeGreaterThan(0.2);
    expect(share(windows.map(({ told }) => told))).toBe(0);
  });

  it('shows and tells nothing of categories that are so rare that a window may have none of them', () => {
    const windows = Array.from({ length: STREAMS }, (_, seed) =>
      windowOf('categorical', seed, { before: rare, now: rare, rows: 50 }),
    );
    expect(windows.every(({ window }) => Number.isFinite(window['psi']))).toBe(true);
    expect(share(windows.map(({ told }) => told))).toBe(0);
  });
});
