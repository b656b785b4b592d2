import type { Load } from '../test/policies/limit-rig.ts';
import { capacityOf, LimitRig, mean, quantile } from '../test/policies/limit-rig.ts';

/**
 * Controllers of an endpoint's limit side by side, in virtual time: the whole path before one simulated engine, under an
 * open loop. `node bench/limits.ts [--loads WORDS] [--seeds N] [CONTROLLER...]`. The best of the fixed limits is looked
 * for first, and each controller is held against it. Its results stand in decision 10.
 */

const FAST = { prefillTokensPerSecond: 100_000, decodeTokensPerSecond: 200, batchMax: 64 };
const HEAVY = { prefillTokensPerSecond: 4000, decodeTokensPerSecond: 150, batchMax: 64 };
const FULL = [[0, 2]] as const;

const short = { profile: FAST, prompt: 50, output: 16, spread: 0.3 };
const chat = { prompt: 200, output: 100, spread: 0.6 };
const heavy = { profile: HEAVY, prompt: 50, output: 64, spread: 0.5 };

const LOADS: Record<string, Load> = {
  'short streams': { ...short, stream: true, demand: FULL },
  'short whole answers': { ...short, stream: false, demand: FULL },
  'chat streams': { ...chat, stream: true, demand: FULL },
  'chat whole answers': { ...chat, stream: false, demand: FULL },
  'slow batch, streams': { ...heavy, stream: true, demand: FULL },
  'slow batch, whole answers': { ...heavy, stream: false, demand: FULL },
  'long prompts': { prompt: 2000, output: 40, spread: 0.5, stream: true, demand: FULL },
  'short of memory': {
    profile: { kvTokensMax: 12_000, batchMax: 256 },
    ...{ prompt: 600, output: 200, spread: 0.5, stream: true, demand: FULL },
  },
  'mixed sizes': { prompt: 300, output: 80, spread: 1.3, stream: true, demand: FULL },
  'step to 5 times': {
    ...short,
    stream: true,
    demand: [
      [0, 0.6],
      [10_000, 5],
    ],
  },
  '4 times slower': { ...short, stream: true, demand: FULL, paces: [[20_000, 4]] },
};
const FIXED = [12, 16, 20, 24, 28, 32, 40, 56, 64, 72, 96];
const CONTROLLERS = ['knee', 'target', 'gradient2', 'vegas', 'aimd'];
/** What `target` is given. */
const TARGET = '500ms';
/** From which moment on it is counted. */
const FROM_MS = 10_000;

interface Figures {
  tokens: number;
  first95: number;
  waiting: number;
  limit: number;
  low: number;
  high: number;
  foundMs: number;
  missed: number;
}

function measure(load: Load, limits: object, seeds: number): Figures {
  const all: Figures[] = [];
  for (let seed = 1; seed <= seeds; seed++) all.push(measureOnce(load, limits, seed));
  const over = (key: keyof Figures) => mean(all.map((one) => one[key]));
  return {
    tokens: over('tokens'),
    first95: over('first95'),
    waiting: over('waiting'),
    limit: over('limit'),
    low: over('low'),
    high: over('high'),
    foundMs: over('foundMs'),
    missed: over('missed'),
  };
}

function measureOnce(load: Load, limits: object, seed: number): Figures {
  const endMs = Math.max(40_000, 800_000 / capacityOf(load));
  const rig = new LimitRig({ load, limits, seed }).run(endMs);
  const counted = rig.samples.filter(({ at }) => at >= FROM_MS);
  const limit = counted.map((sample) => sample.limit);
  const firsts = rig.firsts.filter(({ at }) => at >= FROM_MS).map(({ ms }) => ms);
  return {
    tokens: rig.good.filter(({ at }) => at >= FROM_MS).reduce((sum, { tokens }) => sum + tokens, 0),
    first95: firsts.length > 0 ? quantile(firsts, 0.95) : Number.NaN,
    waiting: mean(counted.map(({ waiting }) => waiting)) / mean(counted.map(({ inflight }) => inflight)),
    limit: mean(limit),
    low: quantile(limit, 0.05),
    high: quantile(limit, 0.95),
    foundMs: foundAt(rig, mean(limit)),
    missed: rig.missed.length,
  };
}

/** The first moment at which the limit, as a mean over a second, is within a tenth of where it comes to. */
function foundAt({ samples }: LimitRig, limit: number): number {
  for (let at = 0; at + 10 <= samples.length; at++) {
    const second = mean(samples.slice(at, at + 10).map((sample) => sample.limit));
    if (Math.abs(second / limit - 1) <= 0.1) return samples[at]!.at;
  }
  return Number.NaN;
}

function show(name: string, best: number, f: Figures): void {
  const cells = [
    name.padEnd(12),
    `${((100 * f.tokens) / best).toFixed(1)} %`.padStart(8),
    `${(100 * f.waiting).toFixed(1)} %`.padStart(8),
    f.first95.toFixed(0).padStart(6),
    `${f.limit.toFixed(0)} (${f.low.toFixed(0)} to ${f.high.toFixed(0)})`.padStart(16),
    (f.foundMs / 1000).toFixed(1).padStart(6),
    f.missed.toFixed(0).padStart(6),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}

const args = process.argv.slice(2);
const option = (name: string) => {
  const at = args.indexOf(name);
  return at < 0 ? undefined : args.splice(at, 2)[1];
};
const words = option('--loads');
const seeds = Number(option('--seeds') ?? 3);
const names = args.length > 0 ? args : CONTROLLERS;
for (const [name, load] of Object.entries(LOADS)) {
  if (words && !new RegExp(words).test(name)) continue;
  console.log(`\n${name}\n`);
  console.log(
    '| limit | goodput | waits inside | first token p95 ms | limit (p5 to p95) | found s | missed |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- |');
  const fixed = FIXED.map((concurrency) => ({
    concurrency,
    ...measure(load, { concurrency, adaptive: 'off' }, seeds),
  }));
  const best = Math.max(...fixed.map(({ tokens }) => tokens));
  const fewest = fixed.find(({ tokens }) => tokens >= 0.98 * best)!;
  show(`fixed ${fewest.concurrency}`, best, fewest);
  for (const adaptive of names) {
    const more = adaptive === 'target' ? { firstToken: TARGET } : {};
    show(adaptive, best, measure(load, { concurrency: 512, adaptive, ...more }, seeds));
  }
}
