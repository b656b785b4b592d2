import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { BackendMonitor, type MonitorSettings } from './backend-monitor.ts';

const SETTINGS: MonitorSettings = {
  features: ['a', 'b'].map((name) => ({
    name,
    type: 'numeric',
    rows: 500,
    targetRunLength: 10_000,
    movedMin: 0.05,
  })),
  incidents: { cooldownMs: 600_000, freshRows: 300 },
};

/** A monitor whose features are even on [0, 1), plus `shift` of the row; a row a second. */
function play(shift: (row: number) => { a: number; b: number }, rows: number, restartAt?: number) {
  let monitor = new BackendMonitor(SETTINGS);
  const random = seededRandom(2);
  const told: string[] = [];
  for (let row = 0; row < rows; row++) {
    if (row === restartAt) {
      const kept = JSON.stringify(monitor);
      monitor = new BackendMonitor(SETTINGS);
      monitor.restore(JSON.parse(kept));
    }
    const { a, b } = shift(row);
    for (const notice of monitor.observe(
      { a: random.next() + a, b: random.next() + b },
      row * 1000,
      random,
    )) {
      if (notice.notice === 'frozen') continue;
      told.push(notice.notice);
      if (notice.notice === 'detected') notice.open(`ev_${row}`);
    }
  }
  return { told, monitor };
}

describe('incidents', () => {
  it.each([undefined, 1100, 1300])(
    'trap 44: one lasting change is told once, and confirmed once (restart at %s)',
    (restartAt) => {
      const { told, monitor } = play(
        (row) => ({ a: row > 1000 ? 1 : 0, b: row > 1500 ? 1 : 0 }),
        6000,
        restartAt,
      );
      expect(told).toEqual(['detected', 'confirmed']);
      expect(monitor.incident).toMatchObject({
        first: { feature: 'a' },
        also: [{ feature: 'b', change: 'distribution' }],
      });
    },
  );

  it('trap 44: a change that goes away has passed, and for a while nothing is told', () => {
    const spells = (row: number) => ({
      a: [1000, 1500, 2400].some((from) => row > from && row < from + 40) ? 2 : 0,
      b: 0,
    });
    const { told, monitor } = play(spells, 3500);
    expect(told).toEqual(['detected', 'passed', 'detected', 'passed']);
    expect(monitor.report(seededRandom(1)).held).toBe(1);
  });
});
