import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { seededRandom } from '../src/kernel/random.ts';
import { systemTimers } from '../src/kernel/timers.ts';
import type { Sender } from '../src/load/contracts.ts';
import { parseDistribution } from '../src/load/distribution.ts';
import { Run, type RunResult, type RunSettings } from '../src/load/run.ts';
import { drawn, type Intended, type Lengths, poisson, unscheduled } from '../src/load/schedule.ts';
import { openSender } from '../src/load/sender.ts';
import { type Armature, startArmature } from '../test/upstream/armature.ts';
import type { Inspector } from '../test/upstream/inspector.ts';
import type { Sample } from '../test/upstream/samples.ts';
import { mixedRequests, mixedSender } from './mixed-load.ts';
import { rssMiB } from './process-tree.ts';
import { waitFor } from './stage.ts';
import { median } from './statistics.ts';

/**
 * `node bench/soak.ts [--minutes N] [--share S] [--workers N] [--rate N]`: mixed load on an Armature of its own with
 * simulated engines, at a share of what it can do (or at a rate), and one line a minute: what came of it, how late the
 * workers' loops ran, and, with the load paused for a moment, the gauges and the heaps after a forced collection.
 * Exits with 1 when a gauge does not read zero, the heap grows, or a loop is late.
 */
const CAPACITY_MS = 15_000;
const CAPACITY_CONCURRENCY = 64;
/** Minutes in which caches and compiled code may still grow. */
const SETTLING_MINUTES = 5;
/** The heap may be so much larger at the end than after settling. */
const GROWTH_MAX = 1.05;
const LOOP_LAG_MS_MAX = 5;
const IDLE_MS_MAX = 5000;
const GAUGES = ['armature_inflight', 'armature_queue_depth', 'armature_facts_waiting'];

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    share: { type: 'string', default: '0.5' },
    workers: { type: 'string', default: '1' },
    rate: { type: 'string' },
  },
});

interface Minute {
  result: RunResult;
  lagP99Ms: number;
  /** Gauges that do not read zero with nothing on its way. */
  stuck: string[];
  /** By part: bytes after a forced collection. */
  heaps: Record<string, number>;
  rss: Record<string, number>;
}

const random = seededRandom(1);
await using armature = await startArmature(config(Number(values.workers)), {
  env: { NODE_OPTIONS: '--inspect-port=0' },
});
const origin = `http://127.0.0.1:${armature.gatewayPort}`;
const compose = mixedRequests('/v1', random);
const lengths: Lengths = drawn(distribution('16-128'), distribution('8-32'), random);
const rate = values.rate === undefined ? await shareOfCapacity() : Number(values.rate);
process.exitCode = (await soak(armature, rate)) ? 0 : 1;

function config(workers: number): Parameters<typeof startArmature>[0] {
  const profile = {
    prefillTokensPerSecond: 1_000_000,
    decodeTokensPerSecond: 500,
    batchMax: 512,
    kvTokensMax: 1_000_000,
  };
  const limits = { concurrency: 1000 };
  return {
    gateway: { workers },
    backends: { sim: { engine: 'sim', model: 'sim', profile, limits } },
    routes: { chat: { targets: [{ backend: 'sim' }] }, search: { targets: [{ backend: 'sim' }] } },
  };
}

function distribution(text: string) {
  const read = parseDistribution(text);
  if (typeof read === 'string') throw new Error(read);
  return read;
}

/** Requests a second: what a closed loop gets through, times the share. */
async function shareOfCapacity(): Promise<number> {
  const warm = await load(unscheduled(lengths), CAPACITY_MS / 3, CAPACITY_CONCURRENCY);
  const { tally, measuredMs } = await load(unscheduled(lengths), CAPACITY_MS, CAPACITY_CONCURRENCY);
  const perSecond = (tally.intended * 1000) / measuredMs;
  console.log(`capacity: ${perSecond.toFixed(0)} requests/s (${warm.tally.intended} to warm up)`);
  return perSecond * Number(values.share);
}

async function load(
  schedule: Iterator<Intended>,
  durationMs: number,
  concurrency?: number,
): Promise<RunResult> {
  const sender: Sender = mixedSender(openSender(origin, { connections: 512, headers: {} }), random);
  const settings: RunSettings = {
    schedule,
    concurrency,
    inflightMax: 5000,
    warmupMs: 0,
    durationMs,
    countMax: Number.POSITIVE_INFINITY,
    timeoutMs: 30_000,
    deadlineMs: 1000,
    compose,
  };
  try {
    return await new Run(settings, sender, systemClock, systemTimers).start();
  } finally {
    await sender.close();
  }
}

async function soak(up: Armature, perSecond: number): Promise<boolean> {
  const minutes: Minute[] = [];
  const inspectors = new Map<string, Inspector>();
  for (const { part } of up.parts()) inspectors.set(part, await up.inspect(part));
  console.log(
    `${perSecond.toFixed(0)} requests/s for ${values.minutes} minutes, ${values.workers} worker(s)`,
  );
  for (let i = 0; i < Number(values.minutes); i++) {
    const before = await up.metrics();
    const result = await load(poisson(perSecond, lengths, random), 60_000);
    const lagP99Ms = lagOf(before, await up.metrics());
    const stuck = await stuckGauges(up);
    const heaps: Record<string, number> = {};
    const rss: Record<string, number> = {};
    for (const { part, pid } of up.parts()) {
      heaps[part] = (await inspectors.get(part)?.heapBytes()) ?? 0;
      rss[part] = rssMiB([pid]);
    }
    minutes.push({ result, lagP99Ms, stuck, heaps, rss });
    console.log(row(minutes.length, minutes.at(-1)!));
  }
  return judge(minutes);
}

/** Gives the gauges a moment to come down; what does not is stuck. */
async function stuckGauges(up: Armature): Promise<string[]> {
  let high: Sample[] = [];
  const look = async () => {
    high = (await up.metrics()).filter(({ name, value }) => GAUGES.includes(name) && value !== 0);
    return high.length === 0;
  };
  await waitFor(look, IDLE_MS_MAX).catch((error: Error) => console.error(`gauges: ${error.message}`));
  return high.map(({ name, value }) => `${name} ${value}`);
}

/** The 99th percentile of the loops' lag between two scrapes, in milliseconds, linear within its bucket. */
function lagOf(before: Sample[], after: Sample[]): number {
  const name = 'armature_event_loop_delay_seconds_bucket';
  const at = (samples: Sample[]) =>
    new Map(samples.filter((one) => one.name === name).map((one) => [one.labels.le!, one.value]));
  const old = at(before);
  const buckets = [...at(after)]
    .map(([le, value]) => ({
      le: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le),
      count: value - (old.get(le) ?? 0),
    }))
    .sort((a, b) => a.le - b.le);
  const wanted = (buckets.at(-1)?.count ?? 0) * 0.99;
  let low = { le: 0, count: 0 };
  for (const bucket of buckets) {
    if (bucket.count >= wanted && bucket.count > low.count) {
      return (low.le + ((bucket.le - low.le) * (wanted - low.count)) / (bucket.count - low.count)) * 1000;
    }
    low = bucket;
  }
  return 0;
}

function row(minute: number, { result, lagP99Ms, stuck, heaps, rss }: Minute): string {
  const { tally } = result;
  const parts = Object.keys(heaps).sort();
  const columns: [string, string | number][] = [
    ['min', minute],
    ['requests', tally.intended],
    ['ok', tally.ok],
    ['left', tally.failures.left ?? 0],
    ['wrong', tally.failed - (tally.failures.left ?? 0) + tally.dropped + tally.unfinished],
    ['p50 ms', (tally.total?.p50 ?? 0).toFixed(1)],
    ['p99 ms', (tally.total?.p99 ?? 0).toFixed(1)],
    ['lag p99 ms', lagP99Ms.toFixed(2)],
    ['stuck', stuck.join(' ') || '-'],
    ...parts.map((part) => [`${part} heap/RSS MiB`, `${mib(heaps[part]!)}/${rss[part]}`] as [string, string]),
  ];
  const width = (name: string) => Math.max(name.length, 8) + 2;
  const head = columns.map(([name]) => name.padStart(width(name))).join('');
  const line = columns.map(([name, value]) => String(value).padStart(width(name))).join('');
  return minute === 1 ? `${head}\n${line}` : line;
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function judge(minutes: Minute[]): boolean {
  const faults: string[] = [];
  const settled = minutes.slice(SETTLING_MINUTES);
  for (const part of Object.keys(minutes[0]?.heaps ?? {})) {
    const heaps = settled.map((minute) => minute.heaps[part]!);
    const third = Math.ceil(heaps.length / 3);
    const growth = median(heaps.slice(-third)) / median(heaps.slice(0, third));
    if (heaps.length >= 3)
      console.log(`${part}: heap ${growth.toFixed(3)} times what it was after ${SETTLING_MINUTES} minutes`);
    if (growth > GROWTH_MAX) faults.push(`the heap of ${part} grows`);
  }
  const lags = minutes.map((minute) => minute.lagP99Ms);
  const stuck = minutes.flatMap((minute) => minute.stuck);
  console.log(
    `loop lag p99: ${median(lags).toFixed(2)} ms in the median minute, ${Math.max(...lags).toFixed(2)} in the worst`,
  );
  if (median(lags) > LOOP_LAG_MS_MAX) faults.push('the loops run late');
  if (stuck.length > 0) faults.push(`gauges do not come down: ${stuck.join(', ')}`);
  for (const fault of faults) console.log(`FAULT: ${fault}`);
  return faults.length === 0;
}
