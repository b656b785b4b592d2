import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema/index.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { Answered } from '../../src/simulation/contracts.ts';
import { SimulatedGateway } from '../../src/simulation/gateway.ts';
import { capacityOf, quantile } from '../policies/limit-rig.ts';

/** A spike of five times the capacity, over the whole path in virtual time: what it does to critical requests. */

const BATCH = 128;
const PROFILE = {
  prefillTokensPerSecond: 100_000,
  decodeTokensPerSecond: 100,
  batchMax: BATCH,
  kvTokensMax: 1_000_000,
  coldStart: 0,
  jitter: 0.1,
  faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
};
const PROMPT = 64;
const OUTPUT = 16;
/** Some 488. */
const CAPACITY_PER_SECOND = capacityOf({ profile: PROFILE, prompt: PROMPT, output: OUTPUT });
const CALM_MS = 20_000;
const SPIKE_MS = 40_000;
const AFTER_MS = 10_000;

interface World {
  stream: boolean;
  gauges: boolean;
  limits: object;
}

function play({ stream, gauges, limits }: World) {
  const address = 'http://10.0.0.1:80';
  const answered: Answered[] = [];
  const gateway = new SimulatedGateway({
    settings: settingsSchema.parse({
      backends: {
        engine: {
          engine: 'openai',
          model: 'm',
          endpoints: [`${address}/v1`],
          limits,
          ...(gauges ? { gauges: `${address}/metrics` } : {}),
        },
      },
      routes: { chat: { targets: [{ backend: 'engine' }], deadline: '2s' } },
    }),
    profiles: new Map([['engine', PROFILE]]),
    seed: 1,
    wantsRecord: () => false,
    onAnswered: (caller) => answered.push(caller),
  });
  const { time } = gateway;
  const random = seededRandom(1);
  const spikeAt = CALM_MS + SPIKE_MS;
  const arrive = (priority: 'critical' | 'standard') => {
    const now = time.mono();
    if (now >= spikeAt + AFTER_MS) return;
    const times = now >= CALM_MS && now < spikeAt ? 5 : 0.9;
    const perMs = ((priority === 'critical' ? 0.1 : times - 0.1) * CAPACITY_PER_SECOND) / 1000;
    time.set(-Math.log(1 - random.next()) / perMs, () => {
      gateway.send({
        ...{ atMs: time.mono(), route: 'chat', kind: 'chat', promptTokens: PROMPT, outputTokens: OUTPUT },
        ...{ outputTokensMax: OUTPUT, stream, priority },
        ...{ tenant: undefined, deadlineMs: undefined, session: undefined, leavesAfterMs: undefined },
      });
      arrive(priority);
    });
  };
  arrive('critical');
  arrive('standard');
  time.run(spikeAt + AFTER_MS + 5_000);
  return (from: number, to: number, priority?: string) =>
    answered.filter(
      ({ startedAt, arrival }) =>
        startedAt >= from && startedAt < to && (!priority || arrival.priority === priority),
    );
}

const OPEN = { concurrency: 512 };

describe('a spike of five times the capacity', () => {
  it.each<[string, World, number]>([
    ['whole answers', { stream: false, gauges: true, limits: OPEN }, 1.2],
    ['streams', { stream: true, gauges: true, limits: OPEN }, 1.2],
    ['streams of an engine that tells nothing', { stream: true, gauges: false, limits: OPEN }, 1.2],
    // The cap is above what the engine can bear, and some of its places are kept: the limit has to be found below both.
    ['streams under a hard cap', { stream: true, gauges: false, limits: { concurrency: 256 } }, 1.2],
    // By whole answers alone it takes some seconds to be found.
    ['whole answers under a hard cap', { stream: false, gauges: false, limits: { concurrency: 256 } }, 1.6],
  ])('leaves critical requests nearly as quick as they were: %s', (_, world, most) => {
    const of = play(world);
    const p99 = (from: number, to: number) =>
      quantile(
        of(from, to, 'critical').map(({ startedAt, endedAt }) => endedAt - startedAt),
        0.99,
      );
    const [calm, spike] = [p99(5_000, CALM_MS), p99(CALM_MS, CALM_MS + SPIKE_MS)];
    expect(spike / calm).toBeLessThan(most);
    const critical = of(CALM_MS, CALM_MS + SPIKE_MS, 'critical');
    expect(critical.every(({ status }) => status === 200)).toBe(true);
    const good = of(CALM_MS, CALM_MS + SPIKE_MS).filter(({ status }) => status === 200).length;
    expect(good / (SPIKE_MS / 1000) / CAPACITY_PER_SECOND).toBeGreaterThan(0.95);
    const after = of(CALM_MS + SPIKE_MS + 5_000, CALM_MS + SPIKE_MS + AFTER_MS);
    expect(after.filter(({ status }) => status !== 200).length).toBe(0);
  });
});
