import { describe, expect, it } from 'vitest';
import { replay } from '../../src/events/replay.ts';
import { replayable } from '../../src/policies/register.ts';
import { chatAnswer, chatStream, type Engine, status, VirtualGateway } from './virtual-gateway.ts';

/** Which endpoint of a backend a request goes to, by load. */

const ORIGINS = [1, 2, 3, 4].map((host) => `http://10.0.0.${host}:8000`);
const keyOf = (at: number) => `b1|${ORIGINS[at]}/v1`;

function gatewayOf(count: number, more: { route?: object; limits?: object; seed?: number } = {}) {
  const endpoints = ORIGINS.slice(0, count).map((origin) => `${origin}/v1`);
  const backend = { engine: 'openai', model: 'm', endpoints, limits: { concurrency: 256, ...more.limits } };
  return new VirtualGateway(
    {
      backends: { b1: backend },
      routes: { chat: { targets: [{ backend: 'b1' }], ...more.route } },
    },
    more.seed,
  );
}

/** Requests that each endpoint has been sent. */
const sent = (gateway: VirtualGateway, count: number, from = 0) =>
  ORIGINS.slice(0, count).map(
    (origin) => gateway.records.slice(from).filter(({ endpoint }) => endpoint === `${origin}/v1`).length,
  );

/** So many callers, each of whom sends the next request as soon as the one before is answered. */
async function closedLoop(gateway: VirtualGateway, callers: number, forMs: number, more: object = {}) {
  const end = gateway.time.mono() + forMs;
  const next = () => {
    if (gateway.time.mono() >= end) return;
    gateway.chat(more).whenClosed(() => gateway.time.set(0, next));
  };
  for (let i = 0; i < callers; i++) next();
  await gateway.time.advance(forMs + 5000);
}

describe('by load', () => {
  it('a burst is spread evenly over equal endpoints, whichever of them has been heard of', async () => {
    for (const seed of [1, 2, 3]) {
      const gateway = gatewayOf(3, { seed });
      for (const origin of ORIGINS) gateway.engines.set(origin, chatAnswer('x', 400));
      gateway.chat();
      await gateway.time.advance(1000);
      const from = gateway.records.length;
      for (let i = 0; i < 30; i++) gateway.chat();
      await gateway.time.advance(1000);
      const counts = sent(gateway, 3, from);
      expect(Math.min(...counts)).toBeGreaterThanOrEqual(8);
      expect(Math.max(...counts)).toBeLessThanOrEqual(12);
    }
  });

  it.each([
    ['whole answers', {}, (ms: number) => chatAnswer('x', ms)],
    ['streams', { stream: true }, (ms: number) => chatStream(['a', 'b'], ms / 5)],
  ])('an endpoint that is 20 times slower gets little of %s', async (_what, more, engine) => {
    const gateway = gatewayOf(2);
    gateway.engines.set(ORIGINS[0]!, engine(1000));
    gateway.engines.set(ORIGINS[1]!, engine(50));
    await closedLoop(gateway, 10, 6000, more);
    const [slow, quick] = sent(gateway, 2);
    expect(quick).toBeGreaterThan(20 * slow!);
    expect(slow).toBeGreaterThan(0);
    for (const record of gateway.records.slice(-50)) {
      const again = replay(JSON.parse(JSON.stringify(record)), replayable);
      expect(again.length).toBeGreaterThan(0);
      expect(again.every(({ same }) => same)).toBe(true);
    }
  });

  it('one that was slow and is quick again has its part after a minute', async () => {
    const gateway = gatewayOf(2);
    gateway.engines.set(ORIGINS[0]!, chatAnswer('x', 1000));
    gateway.engines.set(ORIGINS[1]!, chatAnswer('x', 50));
    await closedLoop(gateway, 4, 5000);
    gateway.engines.set(ORIGINS[0]!, chatAnswer('x', 50));
    await closedLoop(gateway, 4, 60_000);
    const from = gateway.records.length;
    await closedLoop(gateway, 4, 5000);
    const [once, other] = sent(gateway, 2, from);
    expect(once).toBeGreaterThan(0.7 * other!);
  });

  it('one whose answers are longer is not slower for it', async () => {
    const gateway = gatewayOf(2);
    const answering = (tokens: number, ms: number): Engine => {
      const usage = { prompt_tokens: 3, completion_tokens: tokens, total_tokens: tokens + 3 };
      const message = { role: 'assistant', content: 'x' };
      const body = { choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
      return status(200, body, {}, ms);
    };
    gateway.engines.set(ORIGINS[0]!, answering(200, 2200));
    gateway.engines.set(ORIGINS[1]!, answering(2, 220));
    for (let i = 0; i < 2; i++) gateway.chat();
    await gateway.time.advance(5000);
    const [long, short] = [0, 1].map((at) => gateway.world.endpoints.get(keyOf(at))!.speed.whole.value);
    expect(long).toBeCloseTo(short!, 6);
  });

  it('one that comes back is not trampled: it begins with a few', async () => {
    const gateway = gatewayOf(4);
    for (const origin of ORIGINS) gateway.engines.set(origin, chatAnswer('x', 2000));
    gateway.world.read({ health: { [keyOf(3)]: 'unwell' } });
    for (let i = 0; i < 45; i++) gateway.chat();
    await gateway.time.advance(100);
    gateway.world.read({ health: {} });
    for (let i = 0; i < 12; i++) gateway.chat();
    const back = gateway.world.endpoints.get(keyOf(3))!;
    expect(back.inflight).toBeGreaterThan(0);
    expect(back.inflight).toBeLessThanOrEqual(4);
    await gateway.time.advance(20_000);
    expect(gateway.records.every(({ outcome }) => outcome === 'ok')).toBe(true);
  });

  it('what others have sent counts where the engines tell of it, and no longer than it is fresh', async () => {
    const gateway = gatewayOf(2);
    for (const origin of ORIGINS) gateway.engines.set(origin, chatAnswer('x', 1));
    const ask = async (times: number) => {
      const from = gateway.records.length;
      for (let i = 0; i < times; i++) {
        gateway.chat();
        await gateway.time.advance(5);
      }
      return sent(gateway, 2, from);
    };
    gateway.world.read({ gauges: { [keyOf(0)]: { running: 30 }, [keyOf(1)]: { running: 2, ageMs: 500 } } });
    expect(await ask(20)).toEqual([0, 20]);
    await gateway.time.advance(5000);
    expect(Math.min(...(await ask(40)))).toBeGreaterThan(8);
    // One that tells nothing is not taken to be idle.
    gateway.world.read({
      gauges: { [keyOf(0)]: { waiting: 30, running: 0 }, [keyOf(1)]: { cacheUsed: 0.1 } },
    });
    expect(Math.min(...(await ask(40)))).toBeGreaterThan(8);
  });
});

describe('a session', () => {
  it('whose endpoint is full goes to another at once, and is back with its next request', async () => {
    const gateway = gatewayOf(2, { route: { affinity: 'session' }, limits: { concurrency: 1 } });
    for (const origin of ORIGINS) gateway.engines.set(origin, chatAnswer('x', 100));
    const headers = { 'x-armature-session': 'mine' };
    const place = () => gateway.records.at(-1)!.endpoint;
    gateway.chat({}, headers);
    await gateway.time.advance(200);
    const own = place();
    const both = [gateway.chat({}, headers), gateway.chat({}, headers)];
    await gateway.time.advance(150);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set(gateway.records.slice(-2).map(({ endpoint }) => endpoint)).size).toBe(2);
    for (let i = 0; i < 5; i++) {
      gateway.chat({}, headers);
      await gateway.time.advance(200);
      expect(place()).toBe(own);
    }
  });
});

it('a target keeps its weight, however busy and whatever its endpoints tell', async () => {
  const backendOf = (from: number, to: number) => ({
    engine: 'openai',
    model: 'm',
    endpoints: ORIGINS.slice(from, to).map((origin) => `${origin}/v1`),
    limits: { adaptive: 'off' },
  });
  const gateway = new VirtualGateway({
    backends: { b1: backendOf(0, 2), b2: backendOf(2, 4) },
    routes: {
      chat: {
        targets: [
          { backend: 'b1', weight: 90 },
          { backend: 'b2', weight: 10 },
        ],
      },
    },
  });
  for (const [at, origin] of ORIGINS.entries())
    gateway.engines.set(origin, chatAnswer('x', at < 2 ? 400 : 5));
  gateway.world.read({ gauges: { [keyOf(0)]: { waiting: 50 }, [keyOf(1)]: { waiting: 50 } } });
  for (let i = 0; i < 2000; i++) {
    gateway.chat();
    await gateway.time.advance(4);
  }
  await gateway.time.advance(1000);
  const canary = gateway.records.filter(
    ({ endpoint }) => endpoint!.includes('10.0.0.3') || endpoint!.includes('10.0.0.4'),
  );
  expect(Math.abs(canary.length - 200)).toBeLessThan(45);
});
