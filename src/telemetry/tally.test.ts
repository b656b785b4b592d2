import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { mergeMetrics } from './merge.ts';
import { type MetricJson, SpreadFamily, TallyFamily } from './tally.ts';

test('a child is the same one for the same labels, and is written by prom-client', async () => {
  const registry = new Registry();
  const requests = new TallyFamily(registry, 'requests_total', 'Requests.', ['route', 'outcome']);
  const ok = requests.of('chat', 'ok');
  ok.add();
  requests.of('chat', 'ok').add(2);
  requests.of('chat', 'failed');
  expect(requests.of('chat', 'ok')).toBe(ok);
  expect(await registry.metrics()).toContain(
    'requests_total{route="chat",outcome="ok"} 3\nrequests_total{route="chat",outcome="failed"} 0\n',
  );
});

test('a value falls into the bucket whose bound it does not exceed, and buckets add up', async () => {
  const registry = new Registry();
  const seconds = new SpreadFamily(registry, 'wait_seconds', 'Waiting.', ['route'], [0.1, 1]).of('chat');
  for (const value of [0, 0.1, 0.125, 1, 2]) seconds.observe(value);
  const sent = JSON.parse(JSON.stringify(await registry.getMetricsAsJSON())) as MetricJson[];
  const text = await mergeMetrics([sent]).metrics();
  expect(text.split('\n').filter((line) => line.startsWith('wait'))).toEqual([
    'wait_seconds_bucket{le="0.1",route="chat"} 2',
    'wait_seconds_bucket{le="1",route="chat"} 4',
    'wait_seconds_bucket{le="+Inf",route="chat"} 5',
    'wait_seconds_sum{route="chat"} 3.225',
    'wait_seconds_count{route="chat"} 5',
  ]);
});
