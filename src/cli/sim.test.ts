import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Printed } from '../../test/printed.ts';
import { main } from './program.ts';

const folder = mkdtempSync(join(tmpdir(), 'armature-sim-'));
afterAll(() => rmSync(folder, { recursive: true }));
const write = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const FILE = write(
  'armature.yaml',
  `
backends:
  model: { engine: sim, limits: { concurrency: 4 }, profile: { batchMax: 4 } }
routes:
  chat: { targets: [{ backend: model }], deadline: 3s, queue: { max: 8 } }
`,
);
const REAL = write(
  'real.yaml',
  `
backends:
  llama: { engine: vllm, model: llama, endpoints: ["http://10.0.0.1:8000/v1", "http://10.0.0.2:8000/v1"] }
routes:
  chat: { targets: [{ backend: llama }] }
  code: { targets: [{ backend: llama }] }
tenants:
  web: { priority: interactive }
`,
);
const TRACE = write('trace.csv', 'TIMESTAMP,ContextTokens,GeneratedTokens\n0,100,10\n1,200,20\n2,300,30\n');
const LOAD = ['--load', 'rate=5/s,for=10s,in=100,out=20'];

async function armature(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const printed = new Printed();
  const code = await main(['sim', ...args], printed.output);
  return { code, out: printed.out, err: printed.err };
}

it('tells what becomes of a load', async () => {
  const { code, out } = await armature('-c', FILE, ...LOAD);
  expect(code).toBe(0);
  expect(out).toContain('requests in');
  expect(out).toMatch(/chat +\d+ +100\.0%/);
  expect(out).toContain('http://model.simulated/v1');
  expect(out).toMatch(/waiting .* at most/);
});

it('takes a pipeline for a route', async () => {
  const file = write(
    'pipeline.yaml',
    `
backends:
  model: { engine: sim }
routes:
  chat: { targets: [{ backend: model }] }
pipelines:
  search:
    stages:
      intent: { route: chat, input: "{{ request.text }}", parameters: { max_tokens: 1 } }
      answer: { route: chat, input: "{{ intent }}", after: [intent] }
`,
  );
  const { code, out } = await armature('-c', file, ...LOAD, '--route', 'search', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(out).all).toMatchObject({ offered: expect.any(Number), refused: 0, failed: 0 });
  const { err } = await armature('-c', file, ...LOAD);
  expect(err).toContain('it has several routes or none (chat, search)');
});

it('prints the same bytes for the same seed, as JSON too', async () => {
  const once = await armature('-c', FILE, ...LOAD, '--json', '--seed', '3');
  const again = await armature('-c', FILE, ...LOAD, '--json', '--seed', '3');
  expect(once.out).toBe(again.out);
  const report = JSON.parse(once.out) as { all: { offered: number; good: number }; series: unknown[] };
  expect(report.all.offered).toBeGreaterThan(30);
  expect(report.all.good).toBe(report.all.offered);
  expect(report.series.length).toBeGreaterThan(9);
  expect((await armature('-c', FILE, ...LOAD, '--json', '--seed', '4')).out).not.toBe(once.out);
});

it('puts two configurations side by side, and --set changes the first alone', async () => {
  const { code, out } = await armature(
    '-c',
    FILE,
    '--compare',
    FILE,
    '--set',
    'backends.model.limits.concurrency=1',
    '--load',
    'rate=30/s,for=20s',
  );
  expect(code).toBe(0);
  expect(out).toMatch(/A {2}.*armature\.yaml with backends\.model\.limits\.concurrency=1, seed 1/);
  expect(out).toMatch(/B {2}.*armature\.yaml, seed 1/);
  expect(out).toMatch(/good, %.*[+-]\d/);
  const json = await armature(
    '-c',
    FILE,
    '--compare',
    FILE,
    '--set',
    'backends.model.limits.concurrency=1',
    '--load',
    'rate=30/s,for=20s',
    '--json',
  );
  const { a, b } = JSON.parse(json.out) as Record<'a' | 'b', { all: { refused: number } }>;
  expect(a.all.refused).toBeGreaterThan(b.all.refused);
});

it('runs several seeds, and says how sure the means are', async () => {
  const { out } = await armature('-c', FILE, ...LOAD, '--repeat', '3');
  expect(out).toContain('3 seeds from 1 on');
  expect(out).toMatch(/first token p99, ms +\d+(\.\d)? \(\d+(\.\d)? to \d+/);
  const { groups } = JSON.parse((await armature('-c', FILE, ...LOAD, '--repeat', '3', '--json')).out) as {
    groups: { figures: { offered: { low: number; mean: number; high: number } } }[];
  };
  const { low, mean, high } = groups[0]!.figures.offered;
  expect(low).toBeLessThan(mean);
  expect(mean).toBeLessThan(high);
});

it('plays a trace against engines whose figures are given', async () => {
  const profile = ['--profile', 'llama=prefill:8000,decode:60,batch:16,kv:50000,jitter:0.1'];
  const { code, out } = await armature('-c', REAL, '--trace', TRACE, '--route', 'chat', ...profile, '--json');
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ offeredMs: 2000, all: { offered: 3, ok: 3, promptTokens: 600 } });
});

it('finds the profile of what was measured, and plays the measured requests', async () => {
  // One at a time: 100 tokens of prompt at 1000 a second, then 9 more of the answer at 50 a second.
  const lines = Array.from({ length: 20 }, (_, i) => {
    const more = i % 2 === 0 ? 100 : 0;
    const latencies = { first_token_ms: 100 + more, total_ms: 280 + more };
    return JSON.stringify({
      timestamp: i * 1000,
      input_length: 100 + more,
      output_length: 10,
      stream: true,
      ...latencies,
    });
  });
  const samples = write('samples.jsonl', lines.join('\n'));
  const { code, out } = await armature('--fit', samples, '--fit-batch', '4');
  expect(code).toBe(0);
  expect(out).toMatch(/^--profile BACKEND=prefill:(99\d|100\d),decode:(49\.\d|50(\.\d)?),batch:4\n/);
  const json = JSON.parse((await armature('--fit', samples, '--json')).out) as {
    requests: number;
    errors: { p99: number };
  };
  expect(json.requests).toBe(20);
  expect(Math.abs(json.errors.p99)).toBeLessThan(0.02);
  const played = await armature('-c', FILE, '--trace', samples, '--json');
  expect(JSON.parse(played.out)).toMatchObject({ all: { offered: 20, outputTokens: 200 } });
});

it.each([
  [['--fit', TRACE], 'line 1 is no sample'],
  [['-c', FILE], 'give a --load, a --trace or both'],
  [['-c', FILE, '--load', 'rate=5/s,route=cat'], "there is no route 'cat'; there are chat"],
  [['-c', FILE, '--load', 'rate=5/s,tenant=web'], 'it has no tenants'],
  [['-c', FILE, '--load', 'sped=5/s'], "--load: 'sped' is none of"],
  [['-c', FILE, ...LOAD, '--set', 'routes.chat.queue.mx=3'], 'unknown key "mx"'],
  [['-c', FILE, ...LOAD, '--set', 'routes'], 'expected PATH=VALUE'],
  [['-c', FILE, ...LOAD, '--speed', '2'], '--speed is for a --trace'],
  [['-c', FILE, '--trace', join(folder, 'none.csv')], 'cannot be read'],
  [['-c', REAL, '--load', 'rate=5/s'], 'it has several routes'],
  [
    ['-c', REAL, '--load', 'rate=5/s,route=chat'],
    'how fast it is is not known here: say it by --profile llama=prefill',
  ],
  [
    ['-c', REAL, '--load', 'rate=5/s,route=chat', '--profile', 'lama=prefill:1,decode:1'],
    "there is no backend 'lama'",
  ],
  [['-c', REAL, '--load', 'rate=5/s,route=chat', '--profile', 'llama=prefill:1'], 'needs prefill and decode'],
  [['-c', join(folder, 'none.yaml'), ...LOAD], 'none.yaml'],
])('%j is asked wrongly: %s', async (args, message) => {
  const { code, err, out } = await armature(...args);
  expect(err).toContain(message);
  expect([code, out]).toEqual([2, '']);
});
