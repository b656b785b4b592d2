import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { type Random, seededRandom } from '../src/kernel/random.ts';
import type { FeatureType, Value } from '../src/releases/drift/contracts.ts';
import { FeatureMonitor, type FeatureSettings } from '../src/releases/drift/feature-monitor.ts';

/**
 * What watching a feature for drift costs: values a second on one core, memory of one feature with the largest reference, and
 * the sizes of what is stored of it; then how many rows a change of numbers takes to be told, the median of so many streams,
 * and how many there are until a false alarm. `node --expose-gc bench/drift.ts [--rows 1000000] [--features 200] [--streams 201]`
 */

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    features: { type: 'string', default: '200' },
    streams: { type: 'string', default: '201' },
  },
});
const ROWS = Number(values.rows);
const FEATURES = Number(values.features);
const STREAMS = Number(values.streams);
/** The longest stream. */
const LONGEST = 50_000;
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

/** Rows after the reference until something is told, as far as LONGEST, of each stream; ascending. */
function runs(referenceRows: number, shift: number, scale: number): number[] {
  return Array.from({ length: STREAMS }, (_, seed) => {
    const random = seededRandom(seed * 7919 + 1);
    const monitor = new FeatureMonitor(settings('numeric', { rows: referenceRows, movedMin: 0 }));
    while (!monitor.isFrozen) monitor.observe(normal(random), 0, random);
    for (let row = 1; row <= LONGEST; row++)
      if (monitor.observe(shift + scale * normal(random), 0, random)) return row;
    return LONGEST;
  }).sort((a, b) => a - b);
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

const median = (sorted: readonly number[]) => sorted[sorted.length >> 1]!;
console.log(
  '\n| reference | 0.25 sd | 0.5 sd | 1 sd | x 1.5 | unchanged: mean, streams told before 10,000 |',
);
console.log('| ---: | ---: | ---: | ---: | ---: | ---: |');
for (const rows of [1000, 5000]) {
  const delays = [
    [0.25, 1],
    [0.5, 1],
    [1, 1],
    [0, 1.5],
  ].map(([shift, scale]) => median(runs(rows, shift!, scale!)));
  const unchanged = runs(rows, 0, 1);
  const mean = Math.round(unchanged.reduce((sum, each) => sum + each, 0) / unchanged.length);
  const early = unchanged.filter((each) => each < 10_000).length;
  console.log(
    `| ${rows} | ${delays.join(' | ')} | ${mean.toLocaleString('en-US')} or more, ${early} of ${STREAMS} |`,
  );
}
