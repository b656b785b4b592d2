import { fork } from 'node:child_process';
import { Agent, createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { seededRandom } from '../src/kernel/random.ts';
import { systemTimers } from '../src/kernel/timers.ts';
import { startArmature } from '../test/upstream/armature.ts';
import { median } from './statistics.ts';

/**
 * What a shadow adds to what callers wait: one engine behind three routes, one without a shadow, one whose shadow hangs, one
 * whose shadow is a hundred times slower; each request is copied, and the answers are compared where there are two. The routes are
 * called in turns within one run. `node bench/shadow.ts [--seconds 210] [--rate 150] [--engine-ms 20]`
 */

const CHILD = 'engine';
const ROUTES = ['plain', 'hanging', 'slow'] as const;
type RouteName = (typeof ROUTES)[number];
/** One turn, milliseconds; what comes first in it is not counted, since it runs beside the end of the turn before. */
const TURN_MS = 2_500;
const UNCOUNTED_MS = 500;
const SLOWER = 100;
const RESAMPLES = 2000;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '210' },
    rate: { type: 'string', default: '150' },
    'engine-ms': { type: 'string', default: '20' },
  },
});
const ENGINE_MS = Number(values['engine-ms']);

/** A chat of eight words, streamed where that is asked for, over `ms` in all; never where that is infinite. */
function answer(response: ServerResponse, streams: boolean, ms: number): void {
  if (ms === Number.POSITIVE_INFINITY) return;
  const words = 'The weather in Oslo will be mild tomorrow .'.split(' ');
  if (!streams) {
    const message = { role: 'assistant', content: words.join(' ') };
    const body = JSON.stringify({ id: 'x', choices: [{ index: 0, message, finish_reason: 'stop' }] });
    systemTimers.set(ms, () => response.writeHead(200, { 'content-type': 'application/json' }).end(body));
    return;
  }
  const piece = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const next = (at: number) => {
    if (at === 0) response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (at === words.length) response.end(`${piece({}, 'stop')}data: [DONE]\n\n`);
    else {
      response.write(piece({ content: `${words[at]} ` }));
      systemTimers.set(ms / words.length, () => next(at + 1));
    }
  };
  systemTimers.set(ms / words.length, () => next(0));
}

/** What engines take, milliseconds: that of callers; and in a process of their own one that hangs, and one that is slow. */
const ENGINES = { own: [ENGINE_MS], shadows: [Number.POSITIVE_INFINITY, ENGINE_MS * SLOWER] };

async function serve(which: keyof typeof ENGINES): Promise<void> {
  const ports = ENGINES[which].map(
    (ms) =>
      new Promise<number>((resolve) => {
        const server = createServer((asked, response) => {
          let body = '';
          asked.on('data', (part) => (body += part));
          asked.on('end', () => answer(response, body.includes('"stream":true'), ms));
        });
        server.keepAliveTimeout = 60_000;
        server.requestTimeout = 0;
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
      }),
  );
  process.send!(await Promise.all(ports));
}

const agent = new Agent({ keepAlive: true });

/** Milliseconds until the answer is whole. */
function ask(port: number, model: RouteName, stream: boolean): Promise<number> {
  const body = JSON.stringify({
    model,
    stream,
    messages: [{ role: 'user', content: 'Will it rain in Oslo?' }],
  });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const since = systemClock.mono();
  return new Promise((resolve, reject) => {
    const to = { agent, port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', headers };
    const sent = request(to, (got) => {
      got.resume();
      got.on('end', () =>
        got.statusCode === 200
          ? resolve(systemClock.mono() - since)
          : reject(new Error(`${model} answered ${got.statusCode}`)),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** One turn of an open loop: constant arrivals, every other one streamed. */
async function turn(port: number, route: RouteName): Promise<number[]> {
  const gapMs = 1000 / Number(values.rate);
  const startedAt = systemClock.mono();
  const taken: Promise<number | undefined>[] = [];
  for (let i = 0; i * gapMs < TURN_MS; i++) {
    const due = startedAt + i * gapMs;
    const waitMs = due - systemClock.mono();
    if (waitMs > 0) await new Promise<void>((resolve) => systemTimers.set(waitMs, resolve));
    const counted = i * gapMs >= UNCOUNTED_MS;
    taken.push(ask(port, route, i % 2 === 0).then((ms) => (counted ? ms : undefined)));
  }
  return (await Promise.all(taken)).filter((ms) => ms !== undefined);
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

const sortedOf = (turns: readonly (readonly number[])[]) => turns.flat().sort((a, b) => a - b);

/** How much more one route takes than the plain one, percent, with the interval of 95 in 100: turns are drawn again with their rounds. */
function added(rounds: readonly Record<RouteName, number[]>[], route: RouteName, share: number): string {
  const random = seededRandom(1);
  const ratio = (drawn: readonly Record<RouteName, number[]>[]) =>
    (percentile(sortedOf(drawn.map((each) => each[route])), share) /
      percentile(sortedOf(drawn.map(({ plain }) => plain)), share) -
      1) *
    100;
  const resampled = Array.from({ length: RESAMPLES / 10 }, () =>
    ratio(rounds.map(() => rounds[Math.floor(random.next() * rounds.length)]!)),
  ).sort((a, b) => a - b);
  const [low, high] = [percentile(resampled, 0.025), percentile(resampled, 0.975)];
  return `${ratio(rounds).toFixed(2)} % [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

function start(which: keyof typeof ENGINES) {
  const child = fork(import.meta.filename, [CHILD, which, ...process.argv.slice(2)]);
  const ports = new Promise<number[]>((resolve) =>
    child.once('message', (found) => resolve(found as number[])),
  );
  return { child, ports };
}

async function measure(): Promise<void> {
  const engines = [start('own'), start('shadows')] as const;
  const [[own], [hanging, slow]] = (await Promise.all(engines.map(({ ports }) => ports))) as [
    number[],
    number[],
  ];
  const backend = (port: number | undefined, more = {}) => ({
    engine: 'openai',
    model: 'm',
    endpoints: [`http://127.0.0.1:${port}/v1`],
    probe: { off: true },
    ...more,
  });
  // As many copies on their way as may be: the limit that would find out how few the shadow can take is off.
  const times = {
    timeouts: { firstByte: '2s', idle: '2s', total: '10s' },
    limits: { concurrency: 256, adaptive: 'off' },
  };
  const shadowed = (name: string) => ({
    targets: [{ backend: 'own' }],
    shadow: [{ backend: name, percent: 100, compare: { by: 'exact', whitespace: 'ignored' } }],
  });
  await using armature = await startArmature({
    backends: { own: backend(own), hanging: backend(hanging, times), slow: backend(slow, times) },
    routes: {
      plain: { targets: [{ backend: 'own' }] },
      hanging: shadowed('hanging'),
      slow: shadowed('slow'),
    },
  });
  const rounds: Record<RouteName, number[]>[] = [];
  const until = systemClock.mono() + Number(values.seconds) * 1000;
  for (const route of ROUTES) await turn(armature.gatewayPort, route); // warm
  while (systemClock.mono() + TURN_MS * ROUTES.length < until) {
    const round: Partial<Record<RouteName, number[]>> = {};
    // Each of the three comes first, second and third as often.
    for (let i = 0; i < ROUTES.length; i++) {
      const route = ROUTES[(i + rounds.length) % ROUTES.length]!;
      round[route] = await turn(armature.gatewayPort, route);
    }
    rounds.push(round as Record<RouteName, number[]>);
  }
  console.log(
    `${rounds.length} rounds of ${TURN_MS} ms for each route, ${values.rate} requests a second, engine ${ENGINE_MS} ms`,
  );
  for (const route of ROUTES) {
    const all = sortedOf(rounds.map((round) => round[route]));
    const told = [0.5, 0.9, 0.99].map((share) => `p${share * 100} ${percentile(all, share).toFixed(2)} ms`);
    console.log(`${route.padEnd(8)} ${all.length} requests: ${told.join(', ')}`);
  }
  for (const route of ['hanging', 'slow'] as const) {
    const perRound = median(
      rounds.map(
        (round) => percentile(sortedOf([round[route]]), 0.99) / percentile(sortedOf([round.plain]), 0.99),
      ),
    );
    console.log(
      `${route}: p50 ${added(rounds, route, 0.5)}, p99 ${added(rounds, route, 0.99)}; median of the rounds' p99 ${((perRound - 1) * 100).toFixed(2)} %`,
    );
  }
  const metrics = String((await armature.admin('/metrics')).content);
  console.log(
    metrics
      .split('\n')
      .filter((line) => /^armature_shadow/.test(line))
      .join('\n'),
  );
  for (const { child } of engines) child.kill();
  agent.destroy();
}

if (positionals[0] === CHILD) await serve(positionals[1] as keyof typeof ENGINES);
else await measure();
