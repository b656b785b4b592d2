import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../src/config/load.ts';
import { seededRandom } from '../src/kernel/random.ts';
import { parseDistribution } from '../src/load/distribution.ts';
import { readSamples, type Sample } from '../src/load/samples.ts';
import { FRAME_TOKENS } from '../src/simulation/bodies.ts';

/**
 * How near the simulator comes to a gateway that runs. Both get the same requests at the same moments, at each of some rates:
 *
 *     node bench/sim-against-live.ts -c FILE --route chat --rates 10,20,40 --in 100-400 --out 20-80 --duration 60
 *
 * With --fit RATE the engines of --backend are measured at that rate first, and simulated by what the fit finds; else the
 * profiles of the file count. Needs the addresses of the file to be free.
 */
const { values } = parseArgs({
  options: {
    config: { type: 'string', short: 'c' },
    route: { type: 'string', default: 'chat' },
    rates: { type: 'string', default: '10' },
    fit: { type: 'string' },
    batch: { type: 'string' },
    step: { type: 'string' },
    backend: { type: 'string' },
    in: { type: 'string', default: '100-400' },
    out: { type: 'string', default: '20-80' },
    duration: { type: 'string', default: '60' },
    stream: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
});
if (!values.config) throw new Error('-c FILE is needed');
const armature = new URL('../bin/armature', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'armature-against-'));
const loaded = loadConfig(values.config);
if (!loaded.ok) throw new Error(`${values.config} is not valid`);
const deadline = `${loaded.config.settings.routes[values.route]!.deadline}ms`;
const origin = `http://${loaded.config.settings.gateway.listen}`;

const run = (...args: string[]) =>
  execFileSync(armature, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

interface Row {
  timestamp: number;
  input_length: number;
  output_length: number;
}

function rowsAt(rate: number, seed: number): Row[] {
  const random = seededRandom(seed);
  const lengths = [values.in, values.out].map((text) => {
    const read = parseDistribution(text);
    if (typeof read === 'string') throw new Error(read);
    return read;
  });
  const rows: Row[] = [];
  for (let atMs = 0; atMs < Number(values.duration) * 1000; ) {
    rows.push({
      timestamp: Math.round(atMs * 1000) / 1000,
      input_length: lengths[0]!.draw(random),
      output_length: lengths[1]!.draw(random),
    });
    atMs += (-Math.log(1 - random.next()) / rate) * 1000;
  }
  return rows;
}

const write = (name: string, rows: readonly object[]) => {
  const file = join(folder, name);
  writeFileSync(file, rows.map((row) => JSON.stringify(row)).join('\n'));
  return file;
};

interface Live {
  tally: { intended: number; ok: number; failed: number; total?: { p50: number; p99: number } };
  goodShare: number;
}

function live(rate: number, seed: number): { report: Live; rows: Row[]; samplesFile: string } {
  const rows = rowsAt(rate, seed);
  const samplesFile = join(folder, `samples-${rate}.jsonl`);
  const trace = ['--trace', write(`rows-${rate}.jsonl`, rows), '--samples', samplesFile];
  const seconds = [
    '--warmup',
    '0s',
    '--duration',
    `${Number(values.duration) + 60}s`,
    '--deadline',
    deadline,
  ];
  const more = values.stream ? ['--stream'] : [];
  const out = run('bench', origin, '--route', values.route, ...trace, ...seconds, ...more, '--json');
  return { report: JSON.parse(out) as Live, rows, samplesFile };
}

/** What was asked, with prompts and answers as long as they really were; simulated engines add a message's frame. */
function asAnswered(rows: readonly Row[], samplesFile: string): Row[] {
  const samples = readSamples(samplesFile);
  const lengths = new Map(
    typeof samples === 'string' ? [] : samples.map((each: Sample) => [moment(each.timestamp), each]),
  );
  return rows.map((row) => {
    const sample = lengths.get(moment(row.timestamp));
    if (!sample) return row;
    const { input_length, output_length } = sample;
    return { ...row, input_length: Math.max(1, input_length - FRAME_TOKENS), output_length };
  });
}

/** Stamps are written to the microsecond; a hundredth of a millisecond tells them apart. */
const moment = (ms: number) => ms.toFixed(2);

interface Simulated {
  all: { offered: number; ok: number; good: number; refused: number; total?: { p50: number; p99: number } };
}

const up = spawn(armature, ['up', '-c', values.config, '--data', join(folder, 'data')], { stdio: 'ignore' });
try {
  for (let tries = 0; ; tries++) {
    const ready = await fetch(`${origin}/readyz?route=${values.route}`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (ready) break;
    if (tries > 600) throw new Error('the gateway does not come up');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  let profile: string[] = [];
  if (values.fit !== undefined) {
    const { samplesFile, rows } = live(Number(values.fit), Number(values.seed) + 1000);
    const known = [
      ...(values.batch === undefined ? [] : ['--fit-batch', values.batch]),
      ...(values.step === undefined ? [] : ['--fit-step', values.step]),
    ];
    const fit = JSON.parse(run('sim', '--fit', samplesFile, ...known, '--json')) as {
      figures: string;
      errors: object;
    };
    profile = ['--profile', `${values.backend}=${fit.figures}`];
    console.log(
      `fitted at ${values.fit}/s on ${rows.length} requests: ${profile[1]}, errors ${JSON.stringify(fit.errors)}`,
    );
  }
  console.log('rate  what          live  simulated  simulated / live');
  for (const rate of values.rates.split(',').map(Number)) {
    const { report, rows, samplesFile } = live(rate, Number(values.seed));
    const trace = ['--trace', write(`answered-${rate}.jsonl`, asAnswered(rows, samplesFile))];
    const stream = values.stream ? ['--stream', '1'] : [];
    const out = run(
      'sim',
      '-c',
      values.config,
      '--route',
      values.route,
      ...trace,
      ...stream,
      ...profile,
      '--json',
    );
    const { all } = JSON.parse(out) as Simulated;
    const { tally, goodShare } = report;
    tell(rate, 'p50, ms', tally.total?.p50, all.total?.p50);
    tell(rate, 'p99, ms', tally.total?.p99, all.total?.p99);
    tell(rate, 'good, %', goodShare * 100, (100 * all.good) / all.offered);
    tell(rate, 'not answered', tally.intended - tally.ok, all.offered - all.ok);
  }
} finally {
  up.kill('SIGTERM');
  await new Promise((resolve) => up.once('exit', resolve));
  rmSync(folder, { recursive: true });
}

function tell(rate: number, what: string, real = Number.NaN, simulated = Number.NaN): void {
  const ratio = real === simulated ? 1 : simulated / real;
  console.log(
    `${String(rate).padEnd(5)} ${what.padEnd(13)} ${real.toFixed(1).padStart(6)} ${simulated.toFixed(1).padStart(9)} ${ratio.toFixed(3).padStart(9)}`,
  );
}
