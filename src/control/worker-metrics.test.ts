import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { GatewayPeer, Gateways } from './gateways.ts';
import { WorkerMetrics } from './worker-metrics.ts';

let folder: string;
let time: VirtualTime;
/** Requests that each connected worker has counted, by boot; undefined where it does not answer. */
let counted: Map<string, number | undefined>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'counts-'));
  time = new VirtualTime();
  counted = new Map();
});
afterEach(() => rmSync(folder, { recursive: true }));

const peerOf = (boot: string): GatewayPeer => ({
  part: 'gateway-0',
  worker: 0,
  pid: 1,
  boot,
  send: () => true,
});
const metricsOf = (value: number) => [
  { name: 'requests', help: 'x', type: 'counter', aggregator: 'sum', values: [{ labels: {}, value }] },
  { name: 'inflight', help: 'x', type: 'gauge', aggregator: 'sum', values: [{ labels: {}, value: 1 }] },
];

function opened(workers = 0): WorkerMetrics {
  const gateways = {
    get peers() {
      return [...counted.keys()].map(peerOf);
    },
    has: (boot: string) => counted.has(boot),
    ask: async ({ boot }: GatewayPeer) => {
      const value = counted.get(boot);
      return value === undefined ? undefined : metricsOf(value);
    },
  };
  const options = {
    gateways: gateways as unknown as Gateways,
    workers: () => workers,
    timers: time,
    file: join(folder, 'counts.json'),
  };
  return new WorkerMetrics({ ...options, log: pino({ level: 'silent' }) });
}

async function read(metrics: WorkerMetrics): Promise<Record<string, number>> {
  const lines = (await metrics.exposition([]))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]));
}

test('the counts of any number of workers that left stay, and outlive control', async () => {
  const metrics = opened();
  for (let i = 1; i <= 40; i++) {
    counted.set(`boot-${i}`, i);
    await metrics.exposition([]);
    counted.delete(`boot-${i}`);
    await metrics.left(peerOf(`boot-${i}`));
  }
  expect(await read(metrics)).toEqual({ requests: 820 });
  metrics.close();
  const next = opened();
  counted.set('boot-41', 5);
  expect(await read(next)).toEqual({ requests: 825, inflight: 1 });
  next.close();
  expect(time.pending).toBe(0);
});

test('a worker that comes back is not counted twice', async () => {
  const metrics = opened();
  counted.set('a', 3);
  await metrics.exposition([]);
  counted.delete('a');
  await metrics.left(peerOf('a'));
  counted.set('a', 4);
  expect(await read(metrics)).toEqual({ requests: 4, inflight: 1 });
  metrics.close();
});

test('a worker is asked every five seconds, so that little is lost when it is killed', async () => {
  const metrics = opened();
  counted.set('a', 3);
  await time.advance(5000);
  counted.delete('a');
  await metrics.left(peerOf('a'));
  expect(await read(metrics)).toEqual({ requests: 3 });
  metrics.close();
});

test('one that does not answer counts as it was, and a file that is broken begins anew', async () => {
  writeFileSync(join(folder, 'counts.json'), '{"workers":');
  const metrics = opened();
  counted.set('a', 3);
  await metrics.exposition([]);
  counted.set('a', undefined);
  expect(await read(metrics)).toEqual({ requests: 3, inflight: 1 });
  metrics.close();
});

test('a control that has just begun waits for its workers, a second at most and once', async () => {
  const metrics = opened(2);
  let lines: Record<string, number> | undefined;
  const scrape = async () => {
    lines = await read(metrics);
  };
  void scrape();
  counted.set('a', 3);
  await time.advance(500);
  expect(lines).toBeUndefined();
  counted.set('b', 4);
  await time.advance(20);
  expect(lines).toEqual({ requests: 7, inflight: 2 });
  metrics.close();

  const alone = opened(3);
  const late = read(alone);
  await time.advance(1000);
  expect((await late).requests).toBe(7);
  expect((await read(alone)).requests).toBe(7);
  alone.close();
});
