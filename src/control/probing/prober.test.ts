import { beforeEach, expect, test } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { type HealthChange, type ProbeAnswer, Prober, type ProbeTarget } from './prober.ts';

let time: VirtualTime;
let changes: HealthChange[];
let mute: [string, number][];
let asked: { at: number; endpoint: string; withinMs: number }[];
let answer: (endpoint: string) => ProbeAnswer | Promise<ProbeAnswer>;
let prober: Prober;

beforeEach(() => {
  time = new VirtualTime();
  changes = [];
  mute = [];
  asked = [];
  answer = () => ({ status: 200 });
  prober = new Prober({
    clock: time,
    timers: time,
    random: seededRandom(1),
    probe: async ({ endpoint }, withinMs) => {
      asked.push({ at: time.mono(), endpoint, withinMs });
      return answer(endpoint);
    },
    onChange: (change) => changes.push(change),
    onMute: ({ endpoint }, status) => mute.push([endpoint, status]),
  });
});

function target(endpoint: string, overrides: Partial<ProbeTarget> = {}): ProbeTarget {
  return {
    backend: 'b1',
    endpoint,
    url: `${endpoint}/health`,
    headers: {},
    tls: undefined,
    everyMs: 5000,
    healthy: 2,
    unhealthy: 3,
    pathGiven: false,
    ...overrides,
  };
}

test('an endpoint is asked at its pace, moved by up to a fifth, and within the time of a probe', async () => {
  prober.watch([target('http://a'), target('http://b', { everyMs: 1000 })]);
  await time.advance(600_000);
  const at = asked.filter(({ endpoint }) => endpoint === 'http://a').map(({ at }) => at);
  const gaps = at.slice(1).map((moment, i) => moment - at[i]!);
  expect(at[0]).toBeLessThan(1000);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(4000);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(6000);
  expect(Math.max(...gaps) - Math.min(...gaps)).toBeGreaterThan(500);
  expect(at.length).toBeGreaterThan(110);
  expect(new Set(asked.map(({ endpoint, withinMs }) => `${endpoint} ${withinMs}`))).toEqual(
    new Set(['http://a 2000', 'http://b 1000']),
  );
});

test('it takes three bad answers in a row to be unwell and two good ones to be well again', async () => {
  const script = [200, 200, 500, 503, 200, 500, 500, 500, 200, 500, 200, 200].map((status) => ({ status }));
  answer = () => script.shift() ?? { status: 200 };
  prober.watch([target('http://a', { everyMs: 1000 })]);
  const seen: (string | undefined)[] = [];
  while (script.length > 0) {
    const left = script.length;
    while (script.length === left) await time.advance(10);
    seen.push(prober.readings().health['b1|http://a']);
  }
  expect(seen).toEqual([undefined, ...Array(6).fill('well'), ...Array(4).fill('unwell'), 'well']);
  expect(changes.map(({ health }) => health)).toEqual(['well', 'unwell', 'well']);
  expect(changes[1]).toMatchObject({
    backend: 'b1',
    endpoint: 'http://a',
    figures: { status: 500, inARow: 3, everyMs: 1000, url: 'http://a/health', before: 'well' },
  });
});

test('no answer is a bad answer', async () => {
  answer = () => ({ fault: 'connect ECONNREFUSED' });
  prober.watch([target('http://a')]);
  await time.advance(20_000);
  expect(prober.readings()).toEqual({ health: { 'b1|http://a': 'unwell' } });
  expect(changes[0]?.figures).toMatchObject({ fault: 'connect ECONNREFUSED', before: 'unknown' });
});

test('a path of our own choosing that the engine does not have says nothing of its health, and is told once', async () => {
  answer = (endpoint) => ({ status: endpoint === 'http://a' ? 404 : 401 });
  prober.watch([target('http://a'), target('http://b'), target('http://c', { pathGiven: true })]);
  await time.advance(60_000);
  expect(prober.readings()).toEqual({ health: { 'b1|http://c': 'unwell' } });
  expect(mute.sort()).toEqual([
    ['http://a', 404],
    ['http://b', 401],
  ]);
});

test('what is known of an endpoint stays while it is asked in the same way, and goes with it', async () => {
  answer = () => ({ status: 500 });
  prober.watch([target('http://a'), target('http://b'), target('http://c')]);
  await time.advance(30_000);
  prober.watch([target('http://a'), target('http://b', { unhealthy: 5 })]);
  expect(prober.readings()).toEqual({ health: { 'b1|http://a': 'unwell' } });
});

test('an answer that comes after its endpoint has gone changes nothing, and nothing is left running', async () => {
  let late: (answer: ProbeAnswer) => void = () => {};
  answer = () => new Promise((resolve) => (late = resolve));
  prober.watch([target('http://a', { unhealthy: 1 })]);
  await time.advance(2000);
  prober.close();
  late({ status: 500 });
  await time.advance(60_000);
  expect(changes).toEqual([]);
  expect(asked).toHaveLength(1);
  expect(time.pending).toBe(0);
});
