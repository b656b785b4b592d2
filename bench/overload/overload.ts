import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../src/kernel/random.ts';
import { openaiRequests } from '../../src/load/requests.ts';
import { type Intended, type Lengths, poisson, replayed } from '../../src/load/schedule.ts';
import { readTrace, type TraceRow } from '../../src/load/trace.ts';
import { freePort, waitFor } from '../stage.ts';
import { type Front, fronts } from './fronts.ts';
import { offer, type Result, type Stream, thinned } from './offer.ts';

/**
 * `node bench/overload/overload.ts [NAME...] [--minutes 10] [--factor 5] [--bursts TRACE.csv.gz]`: an engine is offered
 * several times what it can do, through each front in turn: 90 % of its capacity, then the spike, then 90 % again. The
 * engine is a simulated one, or with `--upstream HOST:PORT` any that speaks OpenAI's API and serves `--model`.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '10' },
    factor: { type: 'string', default: '5' },
    bursts: { type: 'string' },
    streamed: { type: 'boolean', default: false },
    'calm-seconds': { type: 'string', default: '60' },
    upstream: { type: 'string' },
    model: { type: 'string', default: 'mock' },
    batch: { type: 'string', default: '128' },
    prompt: { type: 'string', default: '64' },
    output: { type: 'string', default: '16' },
    'deadline-ms': { type: 'string', default: '2000' },
    limits: { type: 'string', default: '{}' },
    out: { type: 'string' },
  },
});

/** Sequences that the engine runs together. */
const BATCH_MAX = Number(values.batch);
const PROFILE = {
  prefillTokensPerSecond: 100_000,
  decodeTokensPerSecond: 100,
  batchMax: BATCH_MAX,
  kvTokensMax: 1_000_000,
};
const LENGTHS = { promptTokens: Number(values.prompt), outputTokens: Number(values.output) };
const DEADLINE_MS = Number(values['deadline-ms']);
const FACTOR = Number(values.factor);
const SPIKE_MS = Number(values.minutes) * 60_000;
const CALM_MS = Number(values['calm-seconds']) * 1000;
/** Critical traffic is a tenth of the capacity, whatever else is offered. */
const CRITICAL_SHARE = 0.1;
const CONNECTIONS = 8192;

const folder = mkdtempSync(join(tmpdir(), 'armature-overload-'));
const children: ChildProcess[] = [];
const root = fileURLToPath(new URL('../..', import.meta.url));

function start(name: string, argv: string[], env: Record<string, string> = {}): ChildProcess {
  const log = openSync(join(folder, `${name}.log`), 'w');
  const child = spawn(argv[0]!, argv.slice(1), {
    env: { ...process.env, ...env },
    stdio: ['ignore', log, log],
  });
  children.push(child);
  return child;
}

/** Requests per second that the engine finishes when it always has enough to do and nothing waits inside it. */
async function capacityOf(upstream: string): Promise<number> {
  const seconds = 8;
  // No two prompts alike: an engine that remembers beginnings would seem quicker than it is.
  const settings = { base: '/v1', model: values.model!, kind: 'chat', stream: false } as const;
  const compose = openaiRequests(settings, seededRandom(3));
  const begun = Date.now();
  const rates = await Promise.all(
    Array.from({ length: BATCH_MAX }, async () => {
      let ended = 0;
      while (Date.now() - begun < seconds * 1000) {
        const answer = await fetch(`http://${upstream}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: compose({ atMs: 0, ...LENGTHS }).body,
        });
        await answer.arrayBuffer();
        if (answer.ok) ended++;
      }
      // By the end of its last answer: counted to a fixed moment, long answers would be rounded up.
      return (ended * 1000) / (Date.now() - begun);
    }),
  );
  return rates.reduce((sum, rate) => sum + rate, 0);
}

/** Starts a simulated engine and gives its address. */
async function simulated(): Promise<string> {
  const argv = ['--model', values.model!, '--profile', JSON.stringify(PROFILE)];
  start('engine', [process.execPath, join(root, 'bench/sim.ts'), ...argv]);
  const printed = () => /^http:\/\/(\S+)\/v1$/m.exec(readFileSync(join(folder, 'engine.log'), 'utf8'))?.[1];
  await waitFor(async () => printed() !== undefined);
  return printed()!;
}

const lengths: Lengths = () => LENGTHS;

/** Arrivals at a mean rate: Poisson, or a trace over and over, as much faster as it takes. */
function arrivals(perSecond: number, rows: TraceRow[] | undefined, seed: number): Iterator<Intended> {
  if (!rows) return poisson(perSecond, lengths, seededRandom(seed));
  return cycled(rows, perSecond);
}

function* cycled(rows: TraceRow[], perSecond: number): Generator<Intended> {
  const lastMs = rows.at(-1)!.atMs;
  const speed = perSecond / (rows.length / (lastMs / 1000));
  for (let pass = 0; ; pass++) {
    for (const { atMs } of replayed(rows, speed))
      yield { atMs: (pass * lastMs) / speed + atMs, ...lengths() };
  }
}

function traffic(perSecond: number, capacity: number, rows: TraceRow[] | undefined): Stream[] {
  const draw = seededRandom(7);
  const share = (CRITICAL_SHARE * capacity) / perSecond;
  return [
    {
      name: 'critical',
      schedule: rows
        ? thinned(arrivals(perSecond, rows, 1), () => draw.next() < share)
        : arrivals(perSecond * share, undefined, 1),
      headers: { 'x-armature-priority': 'critical' },
    },
    {
      name: 'standard',
      schedule: arrivals(perSecond * (1 - share), rows, 2),
      headers: { 'x-armature-priority': 'standard' },
    },
  ];
}

interface Row {
  front: string;
  phase: string;
  results: Result[];
}

async function measure(front: Front, capacity: number, rows: TraceRow[] | undefined): Promise<Row[]> {
  const port = await freePort();
  const spot = { port, folder: join(folder, front.name.replaceAll(' ', '-')) };
  mkdirSync(spot.folder);
  const { argv, env } = front.command(spot);
  const child = start(front.name, argv, env);
  const origin = `http://127.0.0.1:${port}`;
  const settings = {
    origin,
    model: front.model,
    deadlineMs: DEADLINE_MS,
    connections: CONNECTIONS,
    streamed: values.streamed!,
  };
  const withHeaders = (streams: Stream[]) =>
    streams.map((stream) => ({ ...stream, headers: { ...front.headers, ...stream.headers } }));
  const phase = async (name: string, perSecond: number, forMs: number, bursts: TraceRow[] | undefined) => {
    console.error(`${front.name}: ${name}, ${Math.round(perSecond)} requests/s for ${forMs / 1000} s`);
    const streams = withHeaders(traffic(perSecond, capacity, bursts));
    return { front: front.name, phase: name, results: await offer(streams, { ...settings, forMs }) };
  };
  try {
    await waitFor(() => answers(origin, front));
    await phase('warm-up', 0.5 * capacity, 5000, undefined);
    const before = await phase('90 %', 0.9 * capacity, CALM_MS, undefined);
    const spike = await phase(`${FACTOR} x`, FACTOR * capacity, SPIKE_MS, rows);
    const after = await phase('90 % after', 0.9 * capacity, 20_000, undefined);
    return [before, spike, after];
  } finally {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
  }
}

async function answers(origin: string, front: Front): Promise<boolean> {
  const answer = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...front.headers },
    body: JSON.stringify({ model: front.model, max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] }),
  });
  await answer.arrayBuffer();
  return answer.ok;
}

function lineOf({ front, phase, results }: Row, capacity: number, forMs: number): string {
  const all = results.reduce((sum, { good }) => sum + good, 0);
  const sum = (key: 'offered' | 'late' | 'degraded' | 'refused' | 'timedOut' | 'hung' | 'failed') =>
    results.reduce((total, result) => total + result[key], 0);
  const [critical, standard] = results as [Result, Result];
  const cells = [
    front,
    phase,
    Math.round(sum('offered') / (forMs / 1000)),
    (all / (forMs / 1000) / capacity).toFixed(3),
    ...[sum('refused'), sum('degraded'), sum('timedOut'), sum('late'), sum('hung'), sum('failed')],
    `${critical.good}/${critical.offered}`,
    critical.total.p99.toFixed(0),
    standard.total.p99.toFixed(0),
    standard.refusal.p99.toFixed(1),
  ];
  return `| ${cells.join(' | ')} |`;
}

/** Seconds after the spike until every following second had at least 99 % of its requests answered well. */
function recoveryOf({ results }: Row): number {
  const seconds = results[1]!.seconds;
  for (let at = seconds.length - 1; at >= 0; at--) {
    const { offered, good } = seconds[at] ?? { offered: 0, good: 0 };
    if (good < 0.99 * offered) return at + 1;
  }
  return 0;
}

try {
  const rows = values.bursts === undefined ? undefined : readTrace(values.bursts);
  if (typeof rows === 'string') throw new Error(rows);
  const upstream = values.upstream ?? (await simulated());
  const capacity = await capacityOf(upstream);
  console.log(
    `capacity ${capacity.toFixed(0)} requests/s at ${LENGTHS.promptTokens} + ${LENGTHS.outputTokens} tokens; deadline ${DEADLINE_MS} ms`,
  );
  console.log(
    '| front | phase | offered/s | goodput / capacity | refused | degraded | 504 | late | hung | failed | critical good | critical p99 ms | standard p99 ms | refusal p99 ms |',
  );
  console.log(`| --- | --- |${' ---: |'.repeat(12)}`);
  const kept: Row[] = [];
  for (const front of fronts({
    upstream,
    model: values.model!,
    batchMax: BATCH_MAX,
    deadlineMs: DEADLINE_MS,
    limits: JSON.parse(values.limits) as object,
  })) {
    if (positionals.length > 0 && !positionals.includes(front.name.split(' ')[0]!)) continue;
    const measured = await measure(front, capacity, rows);
    const times = [CALM_MS, SPIKE_MS, 20_000];
    measured.forEach((row, at) => void console.log(lineOf(row, capacity, times[at]!)));
    console.log(`| ${front.name} | recovery: ${recoveryOf(measured[2]!)} s |`);
    kept.push(...measured);
  }
  if (values.out)
    writeFileSync(values.out, JSON.stringify({ capacity, cpu: cpus()[0]?.model, kept }, null, 1));
} finally {
  for (const child of children) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
}
