import { setFlagsFromString } from 'node:v8';
import { CONFIG_FILE, type LoadedConfig, loadConfig } from '../config/load.ts';
import type { Settings } from '../config/schema/index.ts';
import { systemClock } from '../kernel/clock.ts';
import { parseDuration } from '../kernel/units.ts';
import { readSamples } from '../load/samples.ts';
import { drawServegen } from '../load/servegen.ts';
import { readTrace, type TraceRow } from '../load/trace.ts';
import { merged, parseTraffic, type TrafficPart, trafficOf, trafficOfTrace } from '../load/traffic.ts';
import type { AcceleratorProfile } from '../simulation/accelerator/step.ts';
import type { Arrival } from '../simulation/contracts.ts';
import { fitProfile } from '../simulation/fit.ts';
import { type SimulationReport, simulate } from '../simulation/run.ts';
import { type GroupSummary, summarise } from '../simulation/summary.ts';
import { reportFaults } from './check.ts';
import {
  askedWrongly,
  type Call,
  type CommandError,
  defineCommand,
  type OptionValues,
  wholeNumber,
} from './command.ts';
import type { Output } from './output.ts';
import { formatRun, formatSummaries } from './sim-report.ts';
import { parseProfile, parseSetting, profileFigures, withSettings } from './sim-settings.ts';

const duration = (text: string): number => {
  const ms = parseDuration(text);
  if (ms === undefined) throw askedWrongly(`expected a duration such as 60s, got '${text}'`);
  return ms;
};

const positive = (text: string): number => {
  if (!/^\d+(\.\d+)?$/.test(text) || Number(text) === 0)
    throw askedWrongly(`expected a number, got '${text}'`);
  return Number(text);
};

const share = (text: string): number => {
  if (!/^[01](\.\d+)?$/.test(text) || Number(text) > 1)
    throw askedWrongly(`expected a share of 0 to 1, got '${text}'`);
  return Number(text);
};

const traffic = (text: string): TrafficPart => {
  const part = parseTraffic(text);
  if (typeof part === 'string') throw askedWrongly(part);
  return part;
};

const options = {
  load: {
    value: 'SPEC',
    summary: 'A part of the load, such as rate=50/s,in=512,out=128; repeatable.',
    parse: traffic,
    many: true,
  },
  trace: { value: 'FILE', summary: 'A recorded load: CSV or JSON lines, gzip or not.' },
  route: { value: 'NAME', summary: 'Where requests go that name no route. Default: the only one.' },
  tenant: { value: 'NAME', summary: 'Who sends requests that name no tenant. Default: the only one.' },
  speed: { value: 'N', summary: 'Play the trace N times as fast. Default: 1.', parse: positive },
  from: { value: 'TIME', summary: 'Begin so far into the trace. Default: 0s.', parse: duration },
  spread: { value: 'TIME', summary: 'Move each row of the trace evenly within so long.', parse: duration },
  stream: {
    value: 'SHARE',
    summary: "Share of the trace's requests that ask for streams. Default: 0.",
    parse: share,
  },
  for: { value: 'TIME', summary: 'Nothing more comes after so long.', parse: duration },
  set: {
    value: 'PATH=VALUE',
    summary: 'A value of the configuration, instead of what the file says; repeatable.',
    parse: parseSetting,
    many: true,
  },
  profile: {
    value: 'BACKEND=FIGURES',
    summary: 'How a backend performs, such as llama=prefill:8000,decode:60,batch:32,kv:100000; repeatable.',
    parse: parseProfile,
    many: true,
  },
  fit: {
    value: 'FILE',
    summary: 'Instead of a simulation: the --profile that fits what `armature bench --samples` measured.',
  },
  fitBatch: {
    value: 'N',
    summary: 'Sequences that the measured engine runs together, where that is known.',
    parse: wholeNumber(1, 100_000),
  },
  fitStep: {
    value: 'N',
    summary: 'Tokens that the measured engine computes in one step, where that is known.',
    parse: wholeNumber(1, 1_000_000),
  },
  compare: { value: 'FILE', summary: 'Another configuration, side by side; --set does not change it.' },
  repeat: {
    value: 'SEEDS',
    summary: 'So many runs, each with a seed of its own: means and intervals.',
    parse: wholeNumber(1, 1000),
  },
  seed: { value: 'N', summary: 'Same seed, same bytes. Default: 1.', parse: wholeNumber(0, 2 ** 31) },
} as const;

type Options = OptionValues<typeof options>;

export const command = defineCommand({
  options,
  details:
    'Members of a --load: rate, at, for, in, out, arrivals (poisson, constant, bursts:SIZE), stream, kind (chat, embeddings), max\n' +
    '(asked, none, N), route, tenant, priority, deadline, sessions, prompts, leave. docs/simulator.md tells all of it.\n\n' +
    'Examples:\n' +
    '  armature sim -c armature.yaml --load rate=50/s,in=512,out=128,for=60s\n' +
    '  armature sim --load rate=40/s,stream=0.5 --load rate=200/s,at=20s,for=10s,priority=batch --set routes.chat.deadline=5s\n' +
    '  armature sim -c now.yaml --compare next.yaml --trace AzureLLMInferenceTrace_conv.csv.gz --repeat 5',
  run: sim,
});

interface Side {
  file: string;
  /** What was put over it by --set. */
  set: string[];
  settings: Settings;
}

async function sim({ options: asked, common, output }: Call<typeof options>): Promise<number> {
  if (asked.fit !== undefined) return tellFit(asked.fit, asked, common.json, output);
  if (asked.load.length === 0 && asked.trace === undefined)
    throw askedWrongly('give a --load, a --trace or both');
  for (const name of ['speed', 'from', 'spread', 'stream'] as const) {
    if (asked[name] !== undefined && asked.trace === undefined)
      throw askedWrongly(`--${name} is for a --trace`);
  }
  const rows = asked.trace === undefined ? undefined : rowsOf(asked.trace, asked);
  const files = [common.config ?? CONFIG_FILE, ...(asked.compare === undefined ? [] : [asked.compare])];
  const sides: Side[] = [];
  for (const [index, file] of files.entries()) {
    const over = index === 0 ? asked.set : [];
    const settings = settingsOf(file, over, output);
    if (!settings) return 2;
    check(file, settings, asked, rows);
    sides.push({ file, set: over.map(({ text }) => text), settings });
  }
  // Requests of a simulation live as those of a gateway do: see src/gateway/main.ts.
  setFlagsFromString('--no-allocation-site-pretenuring');
  const first = asked.seed ?? 1;
  const seeds = Array.from({ length: asked.repeat ?? 1 }, (_, index) => first + index);
  const results: (Pick<Side, 'file' | 'set'> & {
    seeds: number[];
    reports: SimulationReport[];
    groups: GroupSummary[];
  })[] = [];
  for (const { file, set, settings } of sides) {
    const reports: SimulationReport[] = [];
    for (const seed of seeds) reports.push(await run(file, settings, asked, rows, seed));
    results.push({ file, set, seeds, reports, groups: summarise(reports) });
  }
  if (common.json) {
    const told = results.map(({ file, set, reports, groups }) => {
      const of = set.length === 0 ? { file } : { file, set };
      return seeds.length === 1 ? { ...of, ...reports[0]! } : { ...of, seeds, groups };
    });
    output.json(told.length === 1 ? told[0] : { a: told[0], b: told[1] });
  } else if (results.length === 1 && seeds.length === 1) {
    output.print(formatRun(named(results[0]!).file, results[0]!.reports[0]!));
  } else output.print(formatSummaries(results.map((result) => ({ ...result, ...named(result) }))));
  return 0;
}

/** The configuration as a person knows it. */
function named({ file, set }: Pick<Side, 'file' | 'set'>): { file: string } {
  return { file: set.length === 0 ? file : `${file} with ${set.join(', ')}` };
}

/** The rows of a trace, from `--from` on; drawn where the file holds distributions. */
function rowsOf(file: string, { from = 0, for: forMs, speed = 1, seed = 1 }: Options): TraceRow[] {
  const spanMs = forMs === undefined ? Number.POSITIVE_INFINITY : forMs * speed;
  const rows = drawServegen(file, from, spanMs, seed) ?? readTrace(file);
  if (typeof rows === 'string') throw askedWrongly(`--trace: ${rows}`);
  if (from === 0 || rows[0]!.client !== undefined) return rows;
  const left = rows.filter(({ atMs }) => atMs >= from).map((row) => ({ ...row, atMs: row.atMs - from }));
  if (left.length === 0) throw askedWrongly(`--from: the trace ends before that`);
  return left;
}

/** Tells the profile with which the simulated accelerator takes the times that were measured. */
function tellFit(file: string, { fitBatch, fitStep }: Options, json: boolean, output: Output): number {
  const samples = readSamples(file);
  if (typeof samples === 'string') throw askedWrongly(`--fit: ${samples}`);
  const measured = samples.map((sample) => ({
    atMs: sample.timestamp,
    promptTokens: sample.input_length,
    outputTokens: sample.output_length,
    firstTokenMs: sample.first_token_ms,
    totalMs: sample.total_ms,
  }));
  const { profile, errors, spread } = fitProfile(measured, { batchMax: fitBatch, stepTokensMax: fitStep });
  const figures = profileFigures(profile);
  if (json) {
    const {
      prefillTokensPerSecond,
      decodeTokensPerSecond,
      decodeTokensPerSecondMax,
      stepTokensMax,
      batchMax,
    } = profile;
    const rates = { prefillTokensPerSecond, decodeTokensPerSecond, decodeTokensPerSecondMax };
    output.json({
      requests: samples.length,
      profile: { ...rates, stepTokensMax, batchMax },
      figures,
      errors,
      spread,
    });
    return 0;
  }
  const percent = (share: number) => `${share >= 0 ? '+' : ''}${(100 * share).toFixed(1)} %`;
  output.print(
    `--profile BACKEND=${figures}\n` +
      `with it the ${samples.length} measured requests take, against what they took: p50 ${percent(errors.p50)}, ` +
      `p90 ${percent(errors.p90)}, p99 ${percent(errors.p99)}`,
  );
  return 0;
}

/** Undefined where the file is faulty, which has been told then. */
function settingsOf(file: string, set: Options['set'], output: Output): Settings | undefined {
  const loaded = loadConfig(file);
  const made = loaded.ok && set.length > 0 ? withSettings(loaded.config, set) : loaded;
  if (!made.ok) {
    reportFaults(made.faults, output);
    return undefined;
  }
  return (made.config as LoadedConfig).settings;
}

/** What was asked must fit the configuration: nothing is guessed. */
function check(file: string, settings: Settings, asked: Options, rows: TraceRow[] | undefined): void {
  const { tenants, backends } = settings;
  const routes = { ...settings.routes, ...settings.pipelines };
  const list = (map: object) => Object.keys(map).join(', ') || 'none';
  const wrong = (message: string): CommandError => askedWrongly(`${file}: ${message}`);
  const route = (name: string | undefined) => {
    if (name === undefined && Object.keys(routes).length !== 1)
      throw wrong(
        `it has several routes or none (${list(routes)}): say which by --route, or by route= in a --load`,
      );
    if (name !== undefined && !Object.hasOwn(routes, name))
      throw wrong(`there is no route '${name}'; there are ${list(routes)}`);
  };
  const tenant = (name: string | undefined) => {
    if (!tenants && name !== undefined) throw wrong(`it has no tenants, and the load names '${name}'`);
    if (!tenants) return;
    if (name === undefined && Object.keys(tenants).length !== 1)
      throw wrong(
        `it has several tenants (${list(tenants)}): say which by --tenant, or by tenant= in a --load`,
      );
    if (name !== undefined && !Object.hasOwn(tenants, name))
      throw wrong(`there is no tenant '${name}'; there are ${list(tenants)}`);
  };
  const seen = new Set<string>();
  for (const each of [...asked.load, ...(rows ?? [])]) {
    const key = `${each.route}\u0000${each.tenant}\u0000${'client' in each ? each.client : ''}`;
    if (seen.has(key)) continue;
    seen.add(key);
    route(each.route ?? asked.route);
    tenant(('client' in each ? tenantOf(each, settings) : each.tenant) ?? asked.tenant);
  }
  const known = new Set(asked.profile.map(({ backend }) => backend));
  for (const name of known)
    if (!Object.hasOwn(backends, name))
      throw wrong(`--profile: there is no backend '${name}'; there are ${list(backends)}`);
  for (const [name, { engine }] of Object.entries(backends)) {
    if (engine !== 'sim' && !known.has(name))
      throw wrong(
        `the backend '${name}' is ${engine}, and how fast it is is not known here: say it by --profile ${name}=prefill:8000,decode:60,batch:32,kv:100000`,
      );
  }
}

async function run(
  file: string,
  settings: Settings,
  asked: Options,
  rows: TraceRow[] | undefined,
  seed: number,
): Promise<SimulationReport> {
  const profiles = new Map<string, AcceleratorProfile>(
    asked.profile.map(({ backend, profile }) => [backend, profile]),
  );
  const quiet = process.stderr.isTTY ? showProgress(`${file}, seed ${seed}`) : undefined;
  const report = await simulate({
    settings,
    profiles,
    arrivals: arrivalsOf(settings, asked, rows, seed),
    seed,
    ...(asked.for !== undefined && { durationMs: asked.for }),
    ...(quiet && { onProgress: quiet.show }),
  });
  quiet?.end();
  return report;
}

function arrivalsOf(
  settings: Settings,
  asked: Options,
  rows: TraceRow[] | undefined,
  seed: number,
): Iterator<Arrival> {
  const route = asked.route ?? Object.keys({ ...settings.routes, ...settings.pipelines })[0]!;
  const tenant = asked.tenant ?? (settings.tenants && Object.keys(settings.tenants)[0]);
  const parts = asked.load.map((part, index) =>
    trafficOf({ ...part, tenant: part.tenant ?? tenant }, route, seed * 1009 + index),
  );
  if (rows) {
    const named = rows.map((row) => {
      const own = tenantOf(row, settings) ?? tenant;
      return own === undefined ? row : { ...row, tenant: own };
    });
    const { speed = 1, spread = 0, stream = 0 } = asked;
    parts.push(
      trafficOfTrace(named, { route, speed, spreadMs: spread, stream, seed: seed * 1009 + parts.length }),
    );
  }
  return merged(parts);
}

/** A client of a trace is the tenant of its name, where there is one. */
function tenantOf(
  { tenant, client }: Pick<TraceRow, 'tenant' | 'client'>,
  { tenants }: Settings,
): string | undefined {
  return tenant ?? (client !== undefined && tenants && Object.hasOwn(tenants, client) ? client : undefined);
}

/** One line on the terminal, rewritten now and then. */
function showProgress(what: string): { show: (nowMs: number, offered: number) => void; end: () => void } {
  const EVERY_MS = 200;
  let last = 0;
  return {
    show(nowMs, offered) {
      const now = systemClock.mono();
      if (now - last < EVERY_MS) return;
      last = now;
      process.stderr.write(`\r\x1b[K${what}: ${Math.round(nowMs / 1000)}s simulated, ${offered} requests`);
    },
    end: () => void process.stderr.write('\r\x1b[K'),
  };
}
