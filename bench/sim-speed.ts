import { setFlagsFromString } from 'node:v8';
import { settingsSchema } from '../src/config/schema/index.ts';
import { seededRandom } from '../src/kernel/random.ts';
import type { Arrival } from '../src/simulation/contracts.ts';
import { simulate } from '../src/simulation/run.ts';

/**
 * How many requests a minute the simulator takes on one core: `node bench/sim-speed.ts [REQUESTS] [SHARE OF CAPACITY]`. Lengths are
 * those of azure-conv on average (1000 in, 200 out), a third of them streams, on 8 endpoints.
 */
const requests = Number(process.argv[2] ?? 200_000);
const share = Number(process.argv[3] ?? 0.8);
const ENDPOINTS = 8;
const PROMPT = 1000;
const OUTPUT = 200;
const BATCH = 64;
const PREFILL = 16_000;
const DECODE = 60;

const endpoints = Array.from({ length: ENDPOINTS }, (_, i) => `http://10.0.0.${i + 1}:8000/v1`);
const settings = settingsSchema.parse({
  backends: { model: { engine: 'openai', model: 'model', endpoints, limits: { concurrency: 96 } } },
  routes: { chat: { targets: [{ backend: 'model' }], deadline: '30s' } },
});
const profile = {
  prefillTokensPerSecond: PREFILL,
  decodeTokensPerSecond: DECODE,
  batchMax: BATCH,
  kvTokensMax: 200_000,
  coldStart: 0,
  jitter: 0.05,
  faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
};
// A full batch: tokens of answers a second, with the prompts that go with them.
const secondsPerRequest = PROMPT / PREFILL + (OUTPUT * (1 / DECODE + (BATCH - 1) / PREFILL)) / BATCH;
const perSecond = (share * ENDPOINTS) / secondsPerRequest;

function* arrivals(): Generator<Arrival> {
  const random = seededRandom(1);
  let atMs = 0;
  for (let i = 0; i < requests; i++) {
    atMs += (-Math.log(1 - random.next()) / perSecond) * 1000;
    const outputTokens = Math.max(1, Math.round(OUTPUT * (0.2 + 1.6 * random.next())));
    yield {
      atMs,
      route: 'chat',
      kind: 'chat',
      promptTokens: Math.max(1, Math.round(PROMPT * (0.2 + 1.6 * random.next()))),
      outputTokens,
      stream: i % 3 === 0,
      outputTokensMax: outputTokens,
      tenant: undefined,
      priority: undefined,
      deadlineMs: undefined,
      session: undefined,
      leavesAfterMs: undefined,
    };
  }
}

setFlagsFromString('--no-allocation-site-pretenuring'); // as `armature sim` does, see src/cli/sim.ts
const begun = performance.now();
const cpuBegun = process.cpuUsage();
const report = await simulate({
  settings,
  profiles: new Map([['model', profile]]),
  arrivals: arrivals(),
  seed: 1,
});
const seconds = (performance.now() - begun) / 1000;
// On a machine that others use too, the time of its own core says more than the clock on the wall.
const { user, system } = process.cpuUsage(cpuBegun);
const cpuSeconds = (user + system) / 1e6;
const [group] = report.groups;
console.log(
  `${requests} requests (${perSecond.toFixed(1)}/s simulated, ${group!.ok} answered in full) in ${seconds.toFixed(1)} s: ` +
    `${Math.round((requests / seconds) * 60)} requests a minute, ${Math.round((requests / cpuSeconds) * 60)} a minute of CPU; ` +
    `${Math.round(report.elapsedMs / 1000 / seconds)} times as fast as the clock`,
);
console.log(JSON.stringify({ ...group, busy: report.endpoints.map(({ busy }) => busy), left: report.left }));
