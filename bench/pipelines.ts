import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cacheFolder } from '../src/hosts/models/cache.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { seededRandom } from '../src/kernel/random.ts';
import type { LoadRequest } from '../src/load/contracts.ts';
import { poisson } from '../src/load/schedule.ts';
import { type Armature, startArmature } from '../test/upstream/armature.ts';
import { offer, type Result } from './overload/offer.ts';
import { generativeScene, realScene, type Scene, simulatedScene } from './pipelines/scenes.ts';
import { cpuNs, processTree } from './process-tree.ts';

/**
 * `node bench/pipelines.ts real|generative|simulated|spike|virtual [--minutes 5]`: pipelines of three stages in an open loop, through
 * one gateway as it is shipped. README.md beside it says what each is.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '5' },
    'per-minute': { type: 'string', default: '12000' },
    'deadline-ms': { type: 'string' },
    factor: { type: 'string', default: '5' },
    devices: { type: 'string' },
    batch: { type: 'string' },
    data: { type: 'string', default: '/work/shared/data' },
    workers: { type: 'string', default: '1' },
  },
});
const scene = positionals[0] ?? 'real';
const FOR_MS = Number(values.minutes) * 60_000;
const PER_SECOND = Number(values['per-minute']) / 60;
const FACTOR = Number(values.factor);
const DEADLINE_MS = Number(values['deadline-ms'] ?? (scene === 'generative' ? 6000 : 450));
/** What the pipelines are given of that: the rest is for what lies outside of the gateway, the load's own process above all. */
const BUDGET_MS = Math.round((DEADLINE_MS * 8) / 9);
const PIPELINE = 'digest';
const WARM_MS = 8000;
const CALM_MS = 20_000;
const CONNECTIONS = 2048;
/** Of each simulated accelerator; made up, of a model of about 1B on a large accelerator. */
const PROFILE = {
  prefillTokensPerSecond: 200_000,
  decodeTokensPerSecond: 250,
  batchMax: Number(values.batch ?? (scene === 'spike' ? 32 : 64)),
  kvTokensMax: 200_000,
};

/** Simulated accelerators of each stage. */
const DEVICES = Number(values.devices ?? { virtual: 8, spike: 1 }[scene] ?? 2);

const children: { name: string; child: ChildProcess }[] = [];

/** Starts a script beside this one, and gives the first line that it prints. */
async function start(name: string, ...args: string[]): Promise<string> {
  const script = fileURLToPath(new URL(`pipelines/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push({ name, child });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return line;
}

/** The scene, with its models or devices started. */
async function staged(): Promise<Scene> {
  if (scene === 'real') return realScene(await start('models', values.data), values.data, BUDGET_MS);
  if (scene === 'generative') {
    return generativeScene(await start('models', values.data), values.data, BUDGET_MS);
  }
  const count = String(3 * DEVICES);
  return simulatedOn((await start('devices', count, JSON.stringify(PROFILE))).split(' '));
}

function simulatedOn(devices: string[]): Scene {
  const [vectors, summaries, answers] = [0, 1, 2].map((at) =>
    devices.slice(at * DEVICES, (at + 1) * DEVICES),
  ) as [string[], string[], string[]];
  return simulatedScene({ vectors, summaries, answers }, values.data, BUDGET_MS, PROFILE.batchMax);
}

/** The same in virtual time, with addresses that nobody ever calls. */
function inVirtualTime(): void {
  const folder = mkdtempSync(join(tmpdir(), 'armature-pipelines-'));
  const file = join(folder, 'armature.yaml');
  const devices = Array.from({ length: 3 * DEVICES }, (_, at) => `http://127.0.0.1:${1 + at}/v1`);
  writeFileSync(file, JSON.stringify(simulatedOn(devices).config));
  const { prefillTokensPerSecond, decodeTokensPerSecond, batchMax, kvTokensMax } = PROFILE;
  const profile = `prefill:${prefillTokensPerSecond},decode:${decodeTokensPerSecond},batch:${batchMax},kv:${kvTokensMax}`;
  const profiles = ['vectors', 'summaries', 'answers'].flatMap((name) => ['--profile', `${name}=${profile}`]);
  const load = `rate=${values['per-minute']}/min,in=110,out=24,for=${values.minutes}m,route=${PIPELINE}`;
  const command = fileURLToPath(new URL('../bin/armature', import.meta.url));
  spawnSync(command, ['sim', '-c', file, ...profiles, '--load', load], { stdio: 'inherit' });
  rmSync(folder, { recursive: true });
}

const HEAD = [
  'phase',
  'offered/s',
  'offered',
  'full',
  'labelled',
  'late, full',
  'late, labelled',
  'refused',
  'no answer or 504',
  'failed',
  'p50, ms',
  'p99, ms',
  'longest, ms',
  'CPU a query, ms',
];

class Measured {
  readonly #armature: Armature;
  readonly #texts: string[];
  #seed = 0;

  constructor(armature: Armature, texts: string[]) {
    this.#armature = armature;
    this.#texts = texts;
  }

  /** Poisson arrivals for a while; prints a row of what became of them, unless it has no name. */
  async phase(name: string | undefined, perSecond: number, forMs: number): Promise<Result> {
    const random = seededRandom(++this.#seed);
    const before = this.#cpu();
    const [result] = (await offer(
      [{ name: PIPELINE, schedule: poisson(perSecond, () => LENGTHS, random), headers: {} }],
      {
        origin: `http://127.0.0.1:${this.#armature.gatewayPort}`,
        model: PIPELINE,
        forMs,
        deadlineMs: DEADLINE_MS,
        connections: CONNECTIONS,
        streamed: false,
        compose: () => this.#compose(random.next()),
      },
    )) as [Result];
    if (name === undefined) return result;
    const { answer } = result;
    const after = this.#cpu();
    const cpu = Object.entries(after).map(
      ([part, ns]) => `${part} ${((ns - before[part]!) / 1e6 / result.offered).toFixed(2)}`,
    );
    const share = (count: number) => `${count} (${((100 * count) / result.offered).toFixed(2)} %)`;
    const cells = [
      name,
      perSecond.toFixed(1),
      result.offered,
      share(result.good),
      share(result.degraded),
      result.late,
      result.degradedLate,
      result.refused,
      result.hung + result.timedOut,
      result.failed,
      ...[answer.p50, answer.p99, answer.max].map((ms) => ms.toFixed(0)),
      cpu.join(', '),
    ];
    console.log(`| ${cells.join(' | ')} |`);
    const told = { ...result.labels, ...result.failures };
    if (Object.keys(told).length > 0) console.log(`  ${JSON.stringify(told)}`);
    return result;
  }

  /** Shows one answer, so that a reader sees what it is that is counted. */
  async example(): Promise<void> {
    const { path, body } = this.#compose(0);
    const answer = await this.#armature.ask({ path, body }, 60_000);
    console.log(`${this.#texts[0]}\n-> ${answer.status === 200 ? answer.text : answer}\n`);
  }

  /** Full answers a second with so many callers, each of whom asks again as soon as it has an answer. */
  async capacity(callers: number, forMs: number): Promise<number> {
    const random = seededRandom(++this.#seed);
    const begun = systemClock.mono();
    let full = 0;
    const caller = async () => {
      while (systemClock.mono() - begun < forMs) {
        const { path, body } = this.#compose(random.next());
        const answer = await this.#armature.ask({ path, body }, 60_000);
        if (answer.status === 200 && answer.header('x-armature-degraded') === undefined) full++;
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    return (full * 1000) / (systemClock.mono() - begun);
  }

  #compose(draw: number): LoadRequest {
    const content = this.#texts[Math.floor(draw * this.#texts.length)]!;
    const body = JSON.stringify({ model: PIPELINE, messages: [{ role: 'user', content }] });
    return { path: '/v1/chat/completions', body, streams: false };
  }

  /** Nanoseconds of CPU time so far, by part. */
  #cpu(): Record<string, number> {
    const { user, system } = process.cpuUsage();
    const parts = this.#armature.parts().map(({ part, pid }) => [part, cpuNs([pid])]);
    const others = children.map(({ name, child }) => [name, cpuNs(processTree(child.pid!))]);
    return { ...Object.fromEntries([...parts, ...others]), load: (user + system) * 1000 };
  }
}

const LENGTHS = { promptTokens: 1, outputTokens: 1 };

async function measure(): Promise<void> {
  const { config, texts } = await staged();
  const gateway = { workers: Number(values.workers) };
  await using armature = await startArmature(
    { ...config, gateway },
    { env: { ARMATURE_MODELS: cacheFolder() } },
  );
  const measured = new Measured(armature, texts);
  const head = () => console.log(`| ${HEAD.join(' | ')} |\n|${' --- |'.repeat(HEAD.length)}`);
  if (scene === 'generative') {
    await measured.capacity(1, WARM_MS);
    await measured.example();
    const capacity = await measured.capacity(2, 1.5 * CALM_MS);
    console.log(`capacity ${capacity.toFixed(2)} full answers/s (two callers, closed loop)`);
    head();
    const { good } = await measured.phase(`${FACTOR} x`, FACTOR * capacity, FOR_MS);
    console.log(`full answers, of the capacity: ${(good / (FOR_MS / 1000) / capacity).toFixed(2)}`);
    return;
  }
  await measured.phase(undefined, PER_SECOND / 2, WARM_MS);
  await measured.example();
  head();
  if (scene === 'spike') {
    await measured.phase('before', PER_SECOND, CALM_MS);
    await measured.phase(`spike of ${FACTOR} x`, FACTOR * PER_SECOND, FOR_MS);
    await measured.phase('after', PER_SECOND, CALM_MS);
  } else await measured.phase(scene, PER_SECOND, FOR_MS);
}

try {
  if (scene === 'virtual') inVirtualTime();
  else await measure();
} finally {
  for (const { child } of children) child.kill('SIGTERM');
}
