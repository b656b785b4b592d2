import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import type { Arrival } from './contracts.ts';
import { simulate } from './run.ts';

const arrival = (atMs: number, more: Partial<Arrival> = {}): Arrival => ({
  atMs,
  route: 'chat',
  kind: 'chat',
  promptTokens: 797, // and 3 of the message's frame
  outputTokens: 11,
  stream: false,
  outputTokensMax: 11,
  tenant: undefined,
  priority: undefined,
  deadlineMs: undefined,
  session: undefined,
  leavesAfterMs: undefined,
  ...more,
});
const PROFILE = { prefillTokensPerSecond: 8000, decodeTokensPerSecond: 50, batchMax: 2, kvTokensMax: 10_000 };
const settings = (more: object = {}, route: object = {}) =>
  settingsSchema.parse({
    backends: { model: { engine: 'sim', profile: PROFILE, ...more } },
    routes: { chat: { targets: [{ backend: 'model' }], deadline: '5s', ...route } },
  });
const run = (arrivals: Arrival[], more: Partial<Parameters<typeof simulate>[0]> = {}) =>
  simulate({ settings: settings(), arrivals: arrivals.values(), seed: 1, ...more });

describe('a simulation', () => {
  it('takes the time that the formula of the accelerator says', async () => {
    const { all, left, endpoints } = await run([arrival(100), arrival(10_000, { stream: true })]);
    // 800 tokens of prompt at 8000 a second, then 10 more tokens at 50 a second.
    expect(all).toMatchObject({ offered: 2, good: 2, ok: 2, refused: 0 });
    expect(all.total).toMatchObject({ p50: expect.closeTo(300, 0), max: expect.closeTo(300, 0) });
    expect(all.firstToken!.p50).toBeCloseTo(100, 0);
    expect(endpoints[0]).toMatchObject({ requests: 2, promptTokens: 1600, outputTokens: 22 });
    expect(Object.values(left).every((value) => value === 0)).toBe(true);
  });

  it('counts an answer of every kind once', async () => {
    const many = Array.from({ length: 300 }, (_, i) =>
      arrival(i * 20, { stream: i % 2 === 0, ...(i % 10 === 0 && { leavesAfterMs: 5 }) }),
    );
    const small = settings({ limits: { concurrency: 2 } }, { queue: { max: 4 }, deadline: '1s' });
    const { all, series, groups } = await run(many, { settings: small });
    const { offered, ok, degraded, refused, failed, left, reasons } = all;
    expect(offered).toBe(300);
    expect(ok + degraded + refused + failed + left).toBe(300);
    expect(refused).toBeGreaterThan(50);
    expect(left).toBeGreaterThan(0);
    expect(Object.values(reasons).reduce((a, b) => a + b)).toBe(refused + failed);
    const sum = (key: 'offered' | 'refused') => series.reduce((total, moment) => total + moment[key], 0);
    expect([sum('offered'), sum('refused')]).toEqual([300, refused]);
    expect(groups).toHaveLength(1);
    expect(all.refusal!.count).toBe(refused);
  });

  it('gives the same bytes for the same seed', async () => {
    const jittery = settings({
      profile: { ...PROFILE, jitter: 0.3, faults: { errorRate: 0.1, resetRate: 0.1 } },
    });
    const many = Array.from({ length: 200 }, (_, i) => arrival(i * 37, { stream: i % 3 === 0 }));
    const text = async (seed: number) => JSON.stringify(await run(many, { settings: jittery, seed }));
    expect(await text(5)).toBe(await text(5));
    expect(await text(5)).not.toBe(await text(6));
  });

  it('falls down the ladder as a gateway does, and says by which rung', async () => {
    const many = Array.from({ length: 20 }, (_, i) => arrival(i));
    const degrading = settings(
      { limits: { concurrency: 1 } },
      { queue: { max: 0 }, ladder: [{ answer: 'Later.' }] },
    );
    const { all } = await run(many, { settings: degrading });
    expect(all).toMatchObject({ ok: 1, degraded: 19, rungs: { answer: 19 } });
  });

  it('makes an endpoint slow, silent or dead when told to', async () => {
    const slow = await run([arrival(0), arrival(5000), arrival(20_000, { stream: true })], {
      disturbances: (gateway) => [
        { atMs: 4000, run: () => gateway.enginesOf('model')[0]!.ails({ kind: 'slow', times: 4 }) },
        { atMs: 19_000, run: () => gateway.enginesOf('model')[0]!.ails(undefined) },
        { atMs: 20_150, run: () => gateway.enginesOf('model')[0]!.restart(1000) },
      ],
    });
    expect(slow.all.total!.max).toBeCloseTo(1200, -1);
    expect(slow.all.failed).toBe(1);
    expect(slow.left['atEngines']).toBe(0);
  });

  it('goes on with a stream that takes longer than the longest pause between its pieces', async () => {
    const { all } = await run([arrival(0, { stream: true, outputTokens: 3000, outputTokensMax: 3000 })]);
    expect(all).toMatchObject({ ok: 1, failed: 0 });
    expect(all.total!.max).toBeGreaterThan(60_000);
  });

  it('runs pipelines as a gateway does, within their deadlines under any load', async () => {
    const stages = {
      intent: {
        route: 'chat',
        input: '{{ request.text }}',
        parameters: { max_tokens: 1 },
        budget: '150ms',
        onFailure: { use: 'none' },
      },
      answer: {
        route: 'chat',
        after: ['intent'],
        input: '{{ intent }}: {{ request.text }}',
        stream: true,
        onFailure: { use: 'sorry' },
      },
    };
    const searching = settingsSchema.parse({
      backends: { model: { engine: 'sim', profile: PROFILE } },
      routes: { chat: { targets: [{ backend: 'model' }] } },
      pipelines: { search: { deadline: '1s', stages } },
    });
    const load = (gapMs: number) =>
      Array.from({ length: 200 }, (_, i) => arrival(i * gapMs, { route: 'search', stream: i % 2 === 0 }));
    const calm = await run(load(1000), { settings: searching });
    expect(calm.all).toMatchObject({ offered: 200, ok: 200 });
    // 100 ms of prompt for each stage, and then the answer's 200 ms.
    expect(calm.all.total!.p50).toBeCloseTo(400, -1);
    const busy = await run(load(50), { settings: searching });
    expect(busy.all.ok + busy.all.degraded).toBe(200);
    expect(busy.all.degraded).toBeGreaterThan(50);
    expect(busy.all.firstToken!.max).toBeLessThanOrEqual(1002);
    expect(Object.values(busy.left).every((value) => value === 0)).toBe(true);
  });
});
