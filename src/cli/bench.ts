import { writeFileSync } from 'node:fs';
import { systemClock } from '../kernel/clock.ts';
import { type Random, seededRandom } from '../kernel/random.ts';
import { systemTimers } from '../kernel/timers.ts';
import { parseDuration, parseRate } from '../kernel/units.ts';
import { describeModel, firstModel } from '../load/discovery.ts';
import { type Distribution, parseDistribution } from '../load/distribution.ts';
import { formatReport, reportOf, type Subject } from '../load/report.ts';
import { openaiRequests } from '../load/requests.ts';
import { Run, type RunResult, type RunSettings } from '../load/run.ts';
import type { Sample } from '../load/samples.ts';
import {
  constant,
  drawn,
  fromTrace,
  type Intended,
  poisson,
  replayed,
  unscheduled,
} from '../load/schedule.ts';
import { openSender } from '../load/sender.ts';
import { oipRequests, readInputs } from '../load/tensors.ts';
import { readTrace } from '../load/trace.ts';
import { askedWrongly, type Call, defineCommand, failed, type OptionValues, wholeNumber } from './command.ts';
import { findRunning } from './running.ts';

/** Requests on their way at most. */
const INFLIGHT_MAX = 20_000;

const duration = (text: string): number => {
  const ms = parseDuration(text);
  if (ms === undefined) throw askedWrongly(`expected a duration such as 30s, got '${text}'`);
  return ms;
};

const distribution = (text: string): Distribution => {
  const read = parseDistribution(text);
  if (typeof read === 'string') throw askedWrongly(read);
  return read;
};

const rate = (text: string): number => {
  const read = parseRate(/^\d+(\.\d+)?$/.test(text) ? `${text}/s` : text);
  if (!read || read.amount === 0) throw askedWrongly(`expected a rate such as 50/s, got '${text}'`);
  return read.amount / read.perSeconds;
};

const positive = (text: string): number => {
  if (!/^\d+(\.\d+)?$/.test(text) || Number(text) === 0)
    throw askedWrongly(`expected a number, got '${text}'`);
  return Number(text);
};

const header = (text: string): [string, string] => {
  const at = text.indexOf(':');
  if (at < 1) throw askedWrongly(`expected NAME: VALUE, got '${text}'`);
  return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()];
};

const options = {
  route: { value: 'NAME', summary: 'What to ask for as `model`. Default: the first that the address lists.' },
  model: { value: 'NAME', summary: 'The same.' },
  rate: { value: 'N/s', summary: 'Open loop: so many requests a second. Default: 5/s.', parse: rate },
  arrivals: { value: 'KIND', summary: 'Of an open loop: poisson (the default) or constant.' },
  concurrency: {
    value: 'N',
    summary: 'Closed loop instead: N requests at all times, the next when one ends.',
    parse: wholeNumber(1, INFLIGHT_MAX),
  },
  duration: { value: 'TIME', summary: 'How long to send and count. Default: 30s.', parse: duration },
  warmup: {
    value: 'TIME',
    summary: 'How long to send before that, uncounted. Default: 5s.',
    parse: duration,
  },
  requests: { value: 'N', summary: 'So many requests at most, warm-up included.', parse: wholeNumber(1) },
  promptTokens: {
    value: 'DIST',
    summary: 'N, A-B or lognormal:MEAN/P95. Default: 128.',
    parse: distribution,
  },
  outputTokens: { value: 'DIST', summary: 'The same for answers. Default: 64.', parse: distribution },
  trace: {
    value: 'FILE',
    summary: 'Lengths, and arrivals unless --rate or --concurrency, from a CSV (or .gz).',
  },
  speed: { value: 'N', summary: "Play the trace's arrivals N times as fast. Default: 1.", parse: positive },
  stream: { summary: 'Ask for streams.' },
  embeddings: { summary: 'Ask for embeddings instead of chats.' },
  oip: { summary: 'Ask for inference over the Open Inference Protocol.' },
  deadline: { value: 'TIME', summary: 'What goodput is counted under. Default: 2s.', parse: duration },
  timeout: { value: 'TIME', summary: 'How long one request may take. Default: 60s.', parse: duration },
  connections: { value: 'N', summary: 'At most. Default: 1024.', parse: wholeNumber(1, 60_000) },
  header: {
    value: 'LINE',
    summary: "'Name: value', sent with every request; repeatable.",
    parse: header,
    many: true,
  },
  key: { value: 'KEY', summary: 'Sent as authorization: Bearer KEY.' },
  samples: {
    value: 'FILE',
    summary: 'Write a line for each counted answer: for `armature sim --fit`, and a trace of its own.',
  },
  seed: {
    value: 'N',
    summary: 'Same seed, same arrivals, lengths and prompts. Default: 1.',
    parse: wholeNumber(0),
  },
} as const;

type Options = OptionValues<typeof options>;

export const command = defineCommand({
  arguments: [
    {
      name: 'URL',
      summary: 'Any OpenAI-style or OIP address. Default: the gateway of a running Armature.',
      optional: true,
    },
  ],
  options,
  details:
    'Latency counts from the moment at which a request was meant to be sent. Goodput counts a stream by its first\n' +
    'token and any other answer by its end. A trace has the columns TIMESTAMP, ContextTokens and GeneratedTokens.\n\n' +
    'Examples:\n' +
    '  armature bench --route chat --stream --rate 20/s --prompt-tokens lognormal:400/1200 --output-tokens 20-200\n' +
    '  armature bench http://10.0.0.5:8000 --concurrency 32 --duration 1m\n' +
    '  armature bench http://10.0.0.7:8000 --oip --model resnet --rate 100/s',
  run: bench,
});

async function bench(call: Call<typeof options>): Promise<number> {
  const { options: asked, common, output } = call;
  check(asked);
  const target = await findTarget(call);
  const headers = headersOf(asked);
  const model = asked.route ?? asked.model ?? (await firstModel(target, headers).catch(fail(target.origin)));
  const random = seededRandom(asked.seed ?? 1);
  const { schedule, arrivals } = scheduleOf(asked, child(random), child(random));
  const samples: Sample[] = [];
  const settings: RunSettings = {
    schedule,
    concurrency: asked.concurrency,
    inflightMax: INFLIGHT_MAX,
    warmupMs: asked.warmup ?? 5000,
    durationMs: asked.duration ?? 30_000,
    countMax: asked.requests ?? Number.POSITIVE_INFINITY,
    timeoutMs: asked.timeout ?? 60_000,
    deadlineMs: asked.deadline ?? 2000,
    compose: await composerOf(asked, target, model, headers, child(random)),
    ...(asked.samples !== undefined && { onSample: (sample: Sample) => void samples.push(sample) }),
  };
  const { result, stopped } = await play(settings, asked, target.origin, headers);
  if (asked.samples !== undefined) writeSamples(asked.samples, samples);
  const subject: Subject = {
    url: target.origin + target.base,
    what: asked.oip
      ? 'inference'
      : asked.embeddings
        ? 'embeddings'
        : asked.stream
          ? 'chat, streamed'
          : 'chat',
    model,
    arrivals,
    closed: asked.concurrency !== undefined,
    warmupMs: settings.warmupMs,
    deadlineMs: settings.deadlineMs,
    seed: asked.seed ?? 1,
    stopped,
  };
  const report = reportOf(subject, result);
  if (common.json) output.json(report);
  else output.print(formatReport(report));
  return report.tally.ok > 0 ? 0 : 1;
}

function writeSamples(file: string, samples: readonly Sample[]): void {
  try {
    writeFileSync(file, samples.map((sample) => `${JSON.stringify(sample)}\n`).join(''));
  } catch (error) {
    throw failed(`--samples: ${(error as Error).message}`);
  }
}

function check(asked: Options): void {
  if (asked.rate !== undefined && asked.concurrency !== undefined) {
    throw askedWrongly('--rate is an open loop and --concurrency a closed one: give one of them');
  }
  if (asked.oip && asked.embeddings) throw askedWrongly('give one of --oip and --embeddings');
  if (asked.stream && (asked.oip || asked.embeddings)) throw askedWrongly('only chats are streamed');
  if (asked.arrivals !== undefined && !['poisson', 'constant'].includes(asked.arrivals)) {
    throw askedWrongly(`--arrivals: expected poisson or constant, got '${asked.arrivals}'`);
  }
  if (asked.speed !== undefined && ((asked.trace === undefined || asked.rate) ?? asked.concurrency)) {
    throw askedWrongly('--speed is for the arrivals of a --trace');
  }
}

interface Target {
  origin: string;
  /** Path before the API's own: `/v1`, `/v2`. */
  base: string;
}

/** An address without a path gets that of the API. */
async function findTarget({ args, options: asked, common }: Call<typeof options>): Promise<Target> {
  const text = args[0] ?? (await findRunning(common)).gateway;
  if (text === undefined) throw failed("the gateway's address is not known here: give it as URL");
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) throw askedWrongly(`'${text}' is no http or https address`);
  const path = url.pathname.replace(/\/+$/, '');
  return { origin: url.origin, base: path || (asked.oip ? '/v2' : '/v1') };
}

function headersOf(asked: Options): Record<string, string> {
  const key = asked.key === undefined ? {} : { authorization: `Bearer ${asked.key}` };
  return { ...key, ...Object.fromEntries(asked.header) };
}

function scheduleOf(
  asked: Options,
  times: Random,
  lengths: Random,
): { schedule: Iterator<Intended>; arrivals: string } {
  const rows = asked.trace === undefined ? undefined : readTrace(asked.trace);
  if (typeof rows === 'string') throw askedWrongly(`--trace: ${rows}`);
  const fixed = (text: string) => parseDistribution(text) as Distribution;
  const source = rows
    ? fromTrace(rows)
    : drawn(asked.promptTokens ?? fixed('128'), asked.outputTokens ?? fixed('64'), lengths);
  if (asked.concurrency !== undefined) {
    return { schedule: unscheduled(source), arrivals: `closed loop, ${asked.concurrency} at all times` };
  }
  if (rows && asked.rate === undefined) {
    const speed = asked.speed ?? 1;
    const arrivals = `open loop, ${rows.length} rows of ${asked.trace} at ${speed} times their speed`;
    return { schedule: replayed(rows, speed), arrivals };
  }
  const perSecond = asked.rate ?? 5;
  return asked.arrivals === 'constant'
    ? { schedule: constant(perSecond, source), arrivals: `open loop, constant ${perSecond}/s` }
    : { schedule: poisson(perSecond, source, times), arrivals: `open loop, Poisson ${perSecond}/s` };
}

/** Each use of chance has a generator of its own, so that one does not move the others. */
function child(random: Random): Random {
  return seededRandom(random.next() * 2 ** 32);
}

async function composerOf(
  asked: Options,
  target: Target,
  model: string,
  headers: Record<string, string>,
  random: Random,
): Promise<RunSettings['compose']> {
  if (!asked.oip) {
    const kind = asked.embeddings ? 'embeddings' : 'chat';
    return openaiRequests({ base: target.base, model, kind, stream: asked.stream }, random);
  }
  const inputs = readInputs(await describeModel(target, model, headers).catch(fail(target.origin)));
  if (typeof inputs === 'string') throw failed(inputs);
  return oipRequests(target.base, model, inputs, random);
}

function fail(origin: string): (error: Error) => never {
  return (error) => {
    throw failed(`${origin}: ${error.message}`);
  };
}

/** Runs to the end, or until the first interrupt, which still brings a report. */
async function play(
  settings: RunSettings,
  asked: Options,
  origin: string,
  headers: Record<string, string>,
): Promise<{ result: RunResult; stopped: boolean }> {
  const connections = Math.max(asked.connections ?? 1024, asked.concurrency ?? 1);
  const sender = openSender(origin, { connections, headers });
  const run = new Run(settings, sender, systemClock, systemTimers);
  let stopped = false;
  const stop = () => {
    stopped = true;
    run.stop();
  };
  process.once('SIGINT', stop);
  const quiet = process.stderr.isTTY ? showProgress(run) : () => {};
  try {
    return { result: await run.start(), stopped };
  } finally {
    quiet();
    process.off('SIGINT', stop);
    await sender.close();
  }
}

/** One line on the terminal, rewritten every second; returns what ends it. */
function showProgress(run: Run): () => void {
  let timer: unknown;
  const show = () => {
    const { elapsedMs, warming, sent, inflight, ended, failed: bad } = run.progress();
    const phase = warming ? 'warming up' : 'counting';
    const line = `${Math.round(elapsedMs / 1000)}s ${phase}: ${sent} sent, ${inflight} on their way, ${ended} ended, ${bad} failed`;
    process.stderr.write(`\r\x1b[K${line}`);
    timer = systemTimers.set(1000, show);
  };
  show();
  return () => {
    systemTimers.clear(timer);
    process.stderr.write('\r\x1b[K');
  };
}
