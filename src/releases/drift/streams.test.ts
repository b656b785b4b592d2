import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { BackendMonitor, type Notice } from './backend-monitor.ts';
import type { FeatureSettings } from './feature-monitor.ts';

const FOLDER = new URL('../../../test/drift/', import.meta.url);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function rowsOf(name: string): number[][] {
  const text = gunzipSync(readFileSync(new URL(`${name}.gz`, FOLDER))).toString();
  return text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').map(Number));
}

const numeric = (name: string, more: Partial<FeatureSettings> = {}): FeatureSettings => ({
  name,
  type: 'numeric',
  rows: 1000,
  targetRunLength: 10_000,
  movedMin: 0.05,
  ...more,
});

const rules = { cooldownMs: HOUR_MS, freshRows: 200 };
const quality = { labels: 1000, targetRunLength: 10_000 };

/** Logistic regression on rows of features and a label, by gradient descent: a model that tells how sure it is. */
function fitted(rows: readonly number[][]): (features: readonly number[]) => number {
  const weights = Array.from({ length: rows[0]!.length }, () => 0);
  const chance = (features: readonly number[]) =>
    1 / (1 + Math.exp(-features.reduce((sum, each, i) => sum + each * weights[i + 1]!, weights[0]!)));
  for (let pass = 0; pass < 200; pass++) {
    for (const row of rows) {
      const [features, label] = [row.slice(0, -1), row.at(-1)!];
      const step = 0.02 * (label - chance(features));
      weights[0]! += step;
      features.forEach((each, i) => {
        weights[i + 1]! += step * each;
      });
    }
  }
  return chance;
}

interface Told {
  row: number;
  feature: string;
  direction: string;
}

/** Plays rows of features and a label through a monitor, beside a model that was fitted to the rows before `from`. */
function play(rows: readonly number[][], from: number, until: number): Told[] {
  const names = rows[0]!.slice(0, -1).map((_, i) => `f${i + 1}`);
  const monitor = new BackendMonitor({
    features: names.map((name) => numeric(name)),
    quality,
    incidents: rules,
  });
  const random = seededRandom(from + 1);
  const model = fitted(rows.slice(Math.max(0, from - 1000), from));
  const told: Told[] = [];
  const hear = (notices: Notice[], row: number) => {
    for (const notice of notices) {
      if (notice.notice !== 'detected') continue;
      notice.open(`ev_${row}`);
      told.push({ row, feature: notice.finding.feature, direction: notice.finding.direction });
    }
  };
  for (let row = from; row < until; row++) {
    const [features, label] = [rows[row]!.slice(0, -1), rows[row]!.at(-1)!];
    const p = model(features);
    const score = Math.max(p, 1 - p);
    hear(
      monitor.observe(Object.fromEntries(names.map((name, i) => [name, features[i]!])), row * 1000, random),
      row,
    );
    monitor.answered(score);
    hear(monitor.labelled(score, p >= 0.5 === (label === 1), row * 1000), row);
  }
  return told;
}

describe('made streams', () => {
  it('finds each change of the rule by the labels, and no change of the inputs; the model that follows is watched anew', () => {
    const rows = rowsOf('threshold-abrupt').map(([, f1, f2, f3, label]) => [
      f1! - 5,
      f2! - 5,
      f3! - 5,
      label!,
    ]);
    const changes = [5000, 10_000, 15_000];
    const delays = changes.map((change) => {
      const told = play(rows, change - 4000, change + 2000);
      expect(told.map(({ feature }) => feature)).toEqual(['quality']);
      expect(told[0]!.direction).toBe('overconfident');
      return told[0]!.row - change;
    });
    for (const delay of delays) {
      expect(delay).toBeGreaterThan(0);
      expect(delay).toBeLessThan(1200);
    }
  });

  it('tells a shift of the inputs from a change of the rule', () => {
    const rows = rowsOf('covariate-only').map((row) => row.slice(1));
    const told = play(rows, 1000, 12_000);
    expect(told.map(({ feature, direction }) => [feature, direction])).toEqual([['f1', 'higher']]);
    expect(told[0]!.row).toBeGreaterThan(6000);
    expect(told[0]!.row).toBeLessThan(6150);
  });

  it('invents nothing in a cycle of days, by a reference over whole days', () => {
    const random = seededRandom(4);
    const cycle = { lengthMs: DAY_MS, count: 7 };
    const monitor = new BackendMonitor({
      features: [numeric('value', { rows: 5000, cycle })],
      incidents: rules,
    });
    const notices = rowsOf('daily-no-drift').flatMap(([minute, value]) =>
      monitor.observe({ value: value! }, minute! * 60_000, random),
    );
    expect(notices.map(({ notice }) => notice)).toEqual(['frozen']);
    expect(monitor.report(random).features[0]!.rows).toBeGreaterThan(3000);
  });

  it('finds a shift on top of that cycle at the end of the first day of it', () => {
    const random = seededRandom(4);
    const cycle = { lengthMs: DAY_MS, count: 7 };
    const monitor = new BackendMonitor({
      features: [numeric('value', { rows: 5000, cycle })],
      incidents: rules,
    });
    const from = 10 * 1440;
    const found = rowsOf('daily-no-drift').findIndex(([minute, value]) => {
      const shifted = minute! >= from ? value! + 20 : value!;
      return monitor
        .observe({ value: shifted }, minute! * 60_000, random)
        .some(({ notice }) => notice === 'detected');
    });
    expect(found).toBe(from + 1440);
  });
});
