import { describe, expect, it } from 'vitest';
import { LimitRig, type Load, mean, quantile } from '../policies/limit-rig.ts';
import { chatAnswer, chatStream, never, status, VirtualGateway } from './virtual-gateway.ts';

/** Limits that move, over the whole path: what they find, how fast, how still they keep, and what they follow. */

const FAST = { prefillTokensPerSecond: 100_000, decodeTokensPerSecond: 200, batchMax: 64 };
const SHORT: Load = { profile: FAST, prompt: 50, output: 16, spread: 0.3, stream: true, demand: [[0, 3]] };
const CHAT: Load = { prompt: 200, output: 100, spread: 0.6, stream: true, demand: [[0, 2]] };

const between = <T extends { at: number }>(of: T[], from: number, to: number) =>
  of.filter(({ at }) => at >= from && at < to);

/** What a limit that stands still gives: tokens in flight, first tokens and goodput, past the beginning. */
function fixedAt(load: Load, concurrency: number, ms = 5_000) {
  const rig = new LimitRig({ load, limits: { concurrency, adaptive: 'off' } }).run(ms);
  const from = ms / 4;
  return {
    inFlight: mean(between(rig.samples, from, ms).map(({ tokens }) => tokens)),
    first95: quantile(
      between(rig.firsts, from, ms).map((first) => first.ms),
      0.95,
    ),
    goodput: between(rig.good, from, ms).reduce((sum, { tokens }) => sum + tokens, 0) / (ms - from),
  };
}

/** The most tokens in flight with 95 % of first tokens within `targetMs`, found by trying. */
function capacityOf(load: Load, targetMs: number): number {
  let [low, high] = [64, 320];
  while (high - low > 6) {
    const middle = Math.round((low + high) / 2);
    if (fixedAt(load, middle).first95 <= targetMs) low = middle;
    else high = middle;
  }
  return fixedAt(load, low).inFlight;
}

describe('a target for first tokens', () => {
  it.each([120, 250])(
    'of %i ms: the most tokens in flight that keep it are found within ten seconds',
    (ms) => {
      const capacity = capacityOf(SHORT, ms);
      const rig = new LimitRig({ load: SHORT, limits: { concurrency: 512, firstToken: `${ms}ms` } }).run(
        30_000,
      );
      for (let at = 9_000; at < 29_000; at += 1_000) {
        const inFlight = mean(between(rig.samples, at, at + 1_000).map(({ tokens }) => tokens));
        expect([at, Math.abs(inFlight / capacity - 1) < 0.1]).toEqual([at, true]);
      }
      const first95 = quantile(
        between(rig.firsts, 10_000, 20_000).map((first) => first.ms),
        0.95,
      );
      expect(first95).toBeLessThan(ms * 1.1);
    },
  );
});

describe('without a target', () => {
  it('nearly all the throughput is had with the engine hardly queueing, within ten seconds', () => {
    const best = Math.max(...[48, 64, 80, 128].map((concurrency) => fixedAt(SHORT, concurrency).goodput));
    const rig = new LimitRig({ load: SHORT, limits: { concurrency: 512 } }).run(30_000);
    const goodput = between(rig.good, 5_000, 30_000).reduce((sum, { tokens }) => sum + tokens, 0) / 25_000;
    expect(goodput / best).toBeGreaterThan(0.95);
    const settled = between(rig.samples, 5_000, 30_000);
    const [waiting, inflight] = [mean(settled.map((s) => s.waiting)), mean(settled.map((s) => s.inflight))];
    expect(waiting / inflight).toBeLessThan(0.12);
    expect(rig.missed).toEqual([]);
  });

  it('the limit keeps still, within a third of its middle at most and a fifth nearly always', () => {
    for (const load of [SHORT, CHAT]) {
      const rig = new LimitRig({ load, limits: { concurrency: 512 } }).run(90_000);
      const limits = between(rig.samples, 25_000, 90_000).map(({ limit }) => limit);
      const middle = mean(limits);
      expect(Math.min(...limits)).toBeGreaterThan(middle * 0.65);
      expect(Math.max(...limits)).toBeLessThan(middle * 1.35);
      expect(quantile(limits, 0.9) - quantile(limits, 0.1)).toBeLessThan(middle * 0.4);
    }
  });

  it('five times the load is taken at once', () => {
    const load: Load = {
      ...SHORT,
      demand: [
        [0, 0.6],
        [10_000, 5],
      ],
    };
    const rig = new LimitRig({ load, limits: { concurrency: 512 } }).run(25_000);
    const goodput = (from: number, to: number) =>
      between(rig.good, from, to).reduce((sum, { tokens }) => sum + tokens, 0) / (to - from);
    expect(goodput(11_000, 12_000)).toBeGreaterThan(0.9 * goodput(15_000, 25_000));
    expect(rig.missed).toEqual([]);
  });
});

describe('an endpoint that turns four times slower', () => {
  it.each([
    // Over eight seeds it is one of fifteen thousand.
    ['by its knee', {}, 0.001],
    // What may wait inside the engine is a tenth of the deadline here: its spread is left to chance.
    ['by a target', { firstToken: '200ms' }, 0.003],
  ])('is followed %s: five seconds later hardly anybody who is let in is too late', (_, limits, share) => {
    const load: Load = { ...SHORT, paces: [[10_000, 4]] };
    const rig = new LimitRig({ load, limits: { concurrency: 512, ...limits }, deadline: '2s' }).run(30_000);
    const good = between(rig.good, 15_000, 30_000).length;
    const missed = rig.missed.filter((cameAt) => cameAt >= 15_000).length;
    expect(missed / good).toBeLessThanOrEqual(share);
    const before = between(rig.good, 5_000, 10_000).length / 5;
    expect(good / 15 / before).toBeGreaterThan(0.25 * 0.9);
  });

  it('and quick again is used again', () => {
    const load: Load = {
      ...SHORT,
      paces: [
        [10_000, 4],
        [20_000, 1],
      ],
    };
    const rig = new LimitRig({ load, limits: { concurrency: 512, firstToken: '200ms' } }).run(32_000);
    const [before, after] = [
      between(rig.good, 5_000, 10_000).length / 5,
      between(rig.good, 27_000, 32_000).length / 5,
    ];
    expect(after / before).toBeGreaterThan(0.95);
  });
});

const A = 'http://10.0.0.1:8000';
function world(limits: object = {}) {
  const gateway = new VirtualGateway({
    backends: { b1: { engine: 'vllm', model: 'm', endpoints: [`${A}/v1`], limits } },
    routes: { chat: { targets: [{ backend: 'b1' }], deadline: '60s' } },
  });
  const endpoint = [...gateway.world.endpoints.values()][0]!;
  return { gateway, endpoint };
}

describe('an endpoint of which nothing is known', () => {
  it('takes twenty requests, and more as soon as answers come: a quick one makes nobody wait long', async () => {
    const { gateway, endpoint } = world();
    gateway.engines.set(A, chatAnswer('x', 4));
    const callers = Array.from({ length: 150 }, () => gateway.chat());
    expect([endpoint.inflight, endpoint.limit]).toEqual([20, 20]);
    await gateway.time.advance(17);
    expect(callers.filter(({ ended }) => ended).length).toBeGreaterThanOrEqual(120);
    await gateway.time.advance(8);
    expect(callers.every(({ status: code }) => code === 200)).toBe(true);
  });

  it('does not hold callers up for the length of a slow answer', async () => {
    const { gateway, endpoint } = world();
    gateway.engines.set(A, chatAnswer('x', 10_000));
    for (let i = 0; i < 100; i++) gateway.chat();
    await gateway.time.advance(490);
    expect(endpoint.inflight).toBe(20);
    await gateway.time.advance(1_020);
    expect(endpoint.inflight).toBe(100);
  });

  it('takes 200 streams that stay, as fast as their first words come', async () => {
    const { gateway, endpoint } = world();
    gateway.engines.set(A, chatStream(['a', ...Array(500).fill('b')], 10));
    for (let i = 0; i < 200; i++) gateway.chat({ stream: true });
    await gateway.time.advance(500);
    expect(endpoint.inflight).toBe(200);
  });

  it('takes no more than its cap, and the cap alone counts where limits do not move', async () => {
    for (const [limits, at] of [
      [{ concurrency: 7 }, 7],
      [{ concurrency: 60, adaptive: 'off' }, 60],
    ] as const) {
      const { gateway, endpoint } = world(limits);
      gateway.engines.set(A, chatAnswer('x', 4));
      for (let i = 0; i < 150; i++) gateway.chat();
      for (let ms = 0; ms < 60; ms++) {
        expect(endpoint.inflight).toBeLessThanOrEqual(at);
        await gateway.time.advance(1);
      }
      expect(endpoint.limit).toBe(at);
    }
  });
});

describe('an endpoint that comes back', () => {
  const warm = async () => {
    const { gateway, endpoint } = world();
    gateway.engines.set(A, chatAnswer('x', 4));
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 100; i++) gateway.chat();
      await gateway.time.advance(100);
    }
    expect(endpoint.limit).toBeGreaterThan(20);
    return { gateway, endpoint };
  };

  it('is met by a few, and by more as they are answered, when probes call it well', async () => {
    const { gateway, endpoint } = await warm();
    gateway.world.read({ health: { [endpoint.key]: 'unwell' } });
    gateway.world.read({ health: { [endpoint.key]: 'well' } });
    expect(endpoint.limit).toBe(4);
    const callers = Array.from({ length: 60 }, () => gateway.chat());
    expect(endpoint.inflight).toBeLessThanOrEqual(5); // they go by tokens, and these are a little below the mean
    await gateway.time.advance(200);
    expect(callers.every(({ status: code }) => code === 200)).toBe(true);
    expect(endpoint.limit).toBeGreaterThan(4);
  });

  it('is met by a few when its breaker closes', async () => {
    const { gateway, endpoint } = await warm();
    gateway.engines.set(A, status(500));
    for (let i = 0; i < 10; i++) gateway.chat();
    await gateway.time.advance(100);
    expect(endpoint.breaker.state).toBe('open');
    gateway.engines.set(A, chatAnswer('x', 4));
    await gateway.time.advance(2_000);
    gateway.chat();
    await gateway.time.advance(10);
    expect([endpoint.breaker.state, endpoint.limit]).toEqual(['closed', 4]);
  });
});

describe('what the engine says', () => {
  const settled = async () => {
    const { gateway, endpoint } = world();
    gateway.engines.set(A, never);
    const callers = Array.from({ length: 20 }, () => gateway.chat());
    return { gateway, endpoint, callers };
  };
  const tell = (gateway: VirtualGateway, key: string, reading: object) =>
    gateway.world.read({ gauges: { [key]: reading } });

  it('of requests that wait inside brings the limit down where it says so twice', async () => {
    const { gateway, endpoint } = await settled();
    tell(gateway, endpoint.key, { waiting: 10, running: 10 });
    const tokens = endpoint.tokensInFlight / 20;
    for (let i = 0; i < 6; i++) endpoint.give(tokens);
    expect(endpoint.hasRoom).toBe(true);
    tell(gateway, endpoint.key, { waiting: 4, running: 10 });
    expect([endpoint.inflight, endpoint.hasRoom]).toEqual([14, false]);
    for (let i = 0; i < 4; i++) endpoint.give(tokens);
    expect(endpoint.hasRoom).toBe(false);
    endpoint.give(tokens);
    expect(endpoint.hasRoom).toBe(true);
    expect(endpoint.limit).toBe(10);
  });

  it('is nothing where those who wait could run too, by what it was seen to run of late', async () => {
    const { gateway, endpoint } = await settled();
    tell(gateway, endpoint.key, { waiting: 0, running: 20 });
    for (let i = 0; i < 4; i++) tell(gateway, endpoint.key, { waiting: 8, running: 12 - i });
    const tokens = endpoint.tokensInFlight / 20;
    endpoint.give(tokens);
    expect(endpoint.hasRoom).toBe(true);
    // What is seen no more is forgotten: by now it is clear that 12 are all that it runs.
    for (let i = 0; i < 20; i++) tell(gateway, endpoint.key, { waiting: 7, running: 12 });
    for (let i = 0; i < 6; i++) endpoint.give(tokens);
    expect([endpoint.inflight, endpoint.hasRoom]).toEqual([13, false]);
  });

  it('is nothing where it is old, where few wait, or where it does not say', async () => {
    const { gateway, endpoint } = await settled();
    for (let i = 0; i < 4; i++) {
      tell(gateway, endpoint.key, { waiting: 10, running: 10, ageMs: 60_000 });
      tell(gateway, endpoint.key, { waiting: 1, running: 19 });
      tell(gateway, endpoint.key, { running: 20 });
    }
    expect(endpoint.limit).toBe(20);
  });

  it('brings it down when it refuses one for want of room', async () => {
    const { gateway, endpoint } = await settled();
    gateway.engines.set(A, status(503, { error: { message: 'busy' } }, { 'retry-after': '1' }));
    endpoint.give(1);
    gateway.chat();
    await gateway.time.advance(5);
    expect(endpoint.limit).toBeLessThan(20);
    expect(endpoint.limit).toBeGreaterThanOrEqual(17);
  });
});

it('times of late are kept for the choice of an endpoint: of first tokens, and of whole answers', async () => {
  const { gateway, endpoint } = world();
  gateway.engines.set(A, chatAnswer('x', 40));
  gateway.chat();
  await gateway.time.advance(50);
  expect(endpoint.speed.whole.at).toBe(40);
  expect(endpoint.speed.whole.value).toBeGreaterThan(0);
  expect(endpoint.speed.firstToken.value).toBeUndefined();
  const rig = new LimitRig({ load: CHAT, limits: {} }).run(3_000);
  expect(rig.endpoint.speed.firstToken.value).toBeGreaterThan(10);
});
