import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { type Random, seededRandom } from '../src/kernel/random.ts';
import type { FeatureType, Value } from '../src/releases/drift/contracts.ts';
import { FeatureMonitor, type FeatureSettings } from '../src/releases/drift/feature-monitor.ts';

/**
 * What watching a feature for drift costs: values a second on one core, memory of one feature with the largest reference, and
 * the sizes of what is stored of it. `node --expose-gc bench/drift.ts [--rows 1000000] [--features 200]`
 */

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '1000000' }, features: { type: 'string', default: '200' } },
});
const ROWS = Number(values.rows);
const FEATURES = Number(values.features);
const DAY_MS = 86_400_000;

const normal = (random: Random) =>
  Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());

const DRAWS: Record<FeatureType, (random: Random) => Value> = {
  numeric: normal,
  // 300 categories with names as long as any: more than are known by name.
  categorical: (random) => `${Math.floor(300 * random.next() ** 2)}`.padStart(48, '-'),
  vector: (random) => Array.from({ length: 16 }, () => normal(random)),
};

const settings = (type: FeatureType, more: Partial<FeatureSettings> = {}): FeatureSettings => ({
  name: 'x',
  type,
  rows: 5000,
  targetRunLength: 10_000,
  movedMin: 0.05,
  ...more,
});

/** Until it is watched, and all that it keeps of the last rows is full. */
function fill(monitor: FeatureMonitor, type: FeatureType, random: Random, msARow: number): void {
  let row = 0;
  const observe = () => monitor.observe(DRAWS[type](random), row++ * msARow, random);
  while (!monitor.isFrozen || monitor.rows < 600) observe();
  for (const end = row + 900; row < end; ) observe();
}

function speed(type: FeatureType): number {
  const random = seededRandom(1);
  const monitor = new FeatureMonitor(settings(type));
  fill(monitor, type, random, 1);
  const drawn = Array.from({ length: 4096 }, () => DRAWS[type](random));
  const from = systemClock.mono();
  for (let row = 0; row < ROWS; row++) monitor.observe(drawn[row & 4095]!, row, random);
  return ROWS / ((systemClock.mono() - from) / 1000);
}

/** Bytes of one of many features, heap and buffers; the names of categories are its own, as they are when they come by a link. */
function memory(type: FeatureType, cycle: boolean): number {
  const random = seededRandom(2);
  const more = cycle ? { cycle: { lengthMs: DAY_MS, count: 7 } } : {};
  const used = () => {
    // Buffers are given back by a later collection than their owners.
    for (let i = 0; i < 4; i++) globalThis.gc!();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const kept = Array.from({ length: FEATURES }, () => {
    const monitor = new FeatureMonitor(settings(type, more));
    fill(monitor, type, random, cycle ? DAY_MS / 1000 : 1);
    return monitor;
  });
  const bytes = (used() - before) / kept.length;
  kept.length = 0;
  return bytes;
}

if (!globalThis.gc) throw new Error('node --expose-gc bench/drift.ts');
console.log(
  '| feature | values/s | KiB | KiB with a cycle | KiB stored |\n| --- | ---: | ---: | ---: | ---: |',
);
for (const type of ['numeric', 'categorical', 'vector'] as const) {
  const monitor = new FeatureMonitor(settings(type));
  fill(monitor, type, seededRandom(3), 1);
  const cells = [
    Math.round(speed(type)).toLocaleString('en-US'),
    (memory(type, false) / 1024).toFixed(1),
    (memory(type, true) / 1024).toFixed(1),
    (JSON.stringify(monitor).length / 1024).toFixed(0),
  ];
  console.log(`| ${type} | ${cells.join(' | ')} |`);
}
