import { Agent } from 'undici';
import type { Clock } from '../kernel/clock.ts';
import { type Random, seededRandom } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import type { LoadTask, LoadTaskResult } from './contracts.ts';
import { describeModel } from './discovery.ts';
import { openaiRequests } from './requests.ts';
import { Run, type RunSettings } from './run.ts';
import { poisson, unscheduled } from './schedule.ts';
import { openSender, tlsOf } from './sender.ts';
import { SpreadSender } from './spread.ts';
import { oipRequests, readInputs } from './tensors.ts';

/** Makes the run of a task; the signal ends it before its time. Rejects with what kept it from beginning. */
export async function runTask(
  task: LoadTask,
  { clock, timers, signal }: { clock: Clock; timers: Timers; signal: AbortSignal },
): Promise<LoadTaskResult> {
  const random = seededRandom(task.seed);
  const child = () => seededRandom(random.next() * 2 ** 32);
  const compose = await composerOf(task, child());
  const servers = task.endpoints.map(({ origin, base }) => ({
    base,
    sender: openSender(origin, {
      connections: task.inflightMax,
      headers: task.headers,
      ...(task.tls && { tls: task.tls }),
    }),
  }));
  const sender = new SpreadSender(servers);
  const lengths = () => ({ promptTokens: task.tokensIn, outputTokens: task.tokensOut });
  const together = task.inflightMax * servers.length;
  const { perSecond } = task;
  const settings: RunSettings = {
    schedule: perSecond === undefined ? unscheduled(lengths) : poisson(perSecond, lengths, child()),
    concurrency: perSecond === undefined ? together : undefined,
    inflightMax: together,
    warmupMs: task.warmupMs,
    durationMs: task.durationMs,
    countMax: Number.POSITIVE_INFINITY,
    timeoutMs: task.timeoutMs,
    deadlineMs: task.timeoutMs,
    compose,
  };
  const run = new Run(settings, sender, clock, timers);
  signal.addEventListener('abort', () => run.stop(), { once: true });
  try {
    const { tally, measuredMs } = await run.start();
    const { intended, ok, failed, dropped, unfinished, failures, outputTokens } = tally;
    const spread = task.kind === 'chat' ? tally.firstToken : tally.total;
    return {
      ...{ intended, ok, failed, dropped, unfinished, failures, tokensOut: outputTokens, measuredMs },
      inflightMost: sender.inflightMost,
      ...(spread && { times: { p50: spread.p50, p95: spread.p95, p99: spread.p99, max: spread.max } }),
    };
  } finally {
    await sender.close();
  }
}

async function composerOf(task: LoadTask, random: Random): Promise<RunSettings['compose']> {
  const { model, kind, cap, headers } = task;
  if (kind !== 'tensors')
    return openaiRequests({ base: '', model, kind, stream: kind === 'chat', cap }, random);
  const dispatcher = new Agent({ connect: tlsOf(task.tls) });
  try {
    const inputs = readInputs(await describeModel(task.endpoints[0]!, model, headers, dispatcher));
    if (typeof inputs === 'string') throw new Error(inputs);
    return oipRequests('', model, inputs, random);
  } finally {
    await dispatcher.close();
  }
}
