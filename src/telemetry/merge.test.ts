import { Gauge, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { addCounts, isMetrics, mergeMetrics } from './merge.ts';
import { type GaugeReadings, workerMetrics } from './metrics.ts';
import type { MetricJson } from './tally.ts';

const idle: GaugeReadings = {
  endpoints: [{ backend: 'b1', endpoint: 'http://a', inflight: 0, limit: 4, breaker: 'closed' }],
  queued: { critical: 0, interactive: 0, standard: 0, batch: 0 },
  routes: [{ route: 'chat', ready: false }],
  factsWaiting: 0,
  batches: {},
};

/** What a worker sends that answered `requests` and reads these gauges. */
async function worker(requests: number, readings: Partial<GaugeReadings> = {}): Promise<MetricJson[]> {
  const registry = new Registry();
  const metrics = workerMetrics(registry, () => ({ ...idle, ...readings }));
  metrics.requests.of('chat', 'web', 'ok').add(requests);
  for (let i = 0; i < requests; i++) metrics.requestSeconds.of('chat').observe(0.004 * (i + 1));
  return JSON.parse(JSON.stringify(await registry.getMetricsAsJSON())) as MetricJson[];
}

async function lines(sets: MetricJson[][], start: string): Promise<string[]> {
  return (await mergeMetrics(sets).metrics()).split('\n').filter((line) => line.startsWith(start));
}

test('counters, gauges and buckets of workers add up; readiness and breakers are the highest', async () => {
  const sets = [
    await worker(1, {
      endpoints: [{ backend: 'b1', endpoint: 'http://a', inflight: 1, limit: 2, breaker: 'open' }],
      routes: [{ route: 'chat', ready: true }],
    }),
    await worker(2, { factsWaiting: 3, queued: { ...idle.queued, batch: 2 } }),
  ];
  expect(await lines(sets, 'armature_requests_total')).toEqual([
    'armature_requests_total{route="chat",tenant="web",outcome="ok"} 3',
  ]);
  const seconds = await lines(sets, 'armature_request_seconds');
  expect(seconds).toContain('armature_request_seconds_bucket{le="0.005",route="chat"} 2');
  expect(seconds).toContain('armature_request_seconds_bucket{le="0.01",route="chat"} 3');
  expect(seconds).toContain('armature_request_seconds_count{route="chat"} 3');
  expect(await lines(sets, 'armature_inflight')).toEqual([
    'armature_inflight{backend="b1",endpoint="http://a"} 1',
  ]);
  expect(await lines(sets, 'armature_limit')).toEqual(['armature_limit{backend="b1",endpoint="http://a"} 6']);
  expect(await lines(sets, 'armature_breaker_state')).toEqual([
    'armature_breaker_state{backend="b1",endpoint="http://a"} 2',
  ]);
  expect(await lines(sets, 'armature_route_ready')).toEqual(['armature_route_ready{route="chat"} 1']);
  expect(await lines(sets, 'armature_facts_waiting')).toEqual(['armature_facts_waiting 3']);
  expect(await lines(sets, 'armature_queue_depth')).toContain('armature_queue_depth{priority="batch"} 2');
});

test('a worker that died leaves its counts and none of its gauges', async () => {
  const dead = await addCounts([await worker(2, { factsWaiting: 7 }), await worker(3)]);
  const sets = [dead, await worker(1)];
  expect(await lines(sets, 'armature_requests_total')).toEqual([
    'armature_requests_total{route="chat",tenant="web",outcome="ok"} 6',
  ]);
  expect(await lines(sets, 'armature_request_seconds_count')).toEqual([
    'armature_request_seconds_count{route="chat"} 6',
  ]);
  expect(await lines(sets, 'armature_facts_waiting')).toEqual(['armature_facts_waiting 0']);
});

test('what is not the metrics of a worker is told apart', async () => {
  expect(isMetrics(await worker(1))).toBe(true);
  for (const data of [
    undefined,
    null,
    {},
    [null],
    [{ name: 'x' }],
    [{ name: 'x', type: 'gauge', aggregator: 'odd', values: [] }],
  ]) {
    expect(isMetrics(data)).toBe(false);
  }
  const registry = new Registry();
  new Gauge({ name: 'x', help: 'x', registers: [registry] }).set(Number.NaN);
  expect(isMetrics(JSON.parse(JSON.stringify(await registry.getMetricsAsJSON())))).toBe(false);
});
