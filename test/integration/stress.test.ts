import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Settings, settingsSchema } from '../../src/config/schema/index.ts';
import { StressGate, type StressGateOptions } from '../../src/control/releases/stress.ts';
import type { EventDraft } from '../../src/events/event-maker.ts';
import { type SimSettings, serveSim } from '../../src/hosts/sim/index.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import type { GateVerdict } from '../../src/releases/contracts.ts';
import { type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { answerByPath, chat, failWith, never, oipEcho } from '../upstream/scripts.ts';

/** What is released is put under load before a caller meets it: real processes and sockets, against scripted engines and a simulated one. */

const ENTRY = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
interface World {
  stress: object;
  next?: Record<string, unknown>;
  routes?: object;
  endpoints: readonly string[];
  pids?: readonly number[];
}

function gateOf({ stress, next, routes, endpoints, pids = [] }: World) {
  const settings: Settings = settingsSchema.parse({
    backends: {
      now: { engine: 'vllm', model: 'm', endpoints: ['http://10.0.0.1:8000/v1'] },
      next: {
        engine: 'vllm',
        model: 'm',
        ...(next?.engine === 'sim' ? {} : { endpoints: ['http://10.0.0.2:8000/v1'] }),
        ...next,
      },
    },
    routes: { chat: { targets: [{ backend: 'now' }], release: { stress } }, ...routes },
  });
  const asked = {
    release: 'rel_1',
    route: 'chat',
    backend: 'next',
    stress: settings.routes['chat']!.release!.stress!,
  };
  const told: EventDraft[] = [];
  const options: StressGateOptions = {
    settings: () => settings,
    endpoints: async () => endpoints,
    hosts: () => pids.map((pid) => ({ backend: 'next', pid })),
    tell: (draft) => {
      told.push(draft);
      return { id: `ev_${told.length}`, at: '', actor: 'armature', causes: [], data: {}, ...draft };
    },
    timers: systemTimers,
    entry: ENTRY,
  };
  const gate = new StressGate(options);
  const pass = (signal = new AbortController().signal): Promise<GateVerdict> => gate.pass(asked, signal);
  return { told, pass };
}

const engineThat = (script: Script): Promise<ScriptedEngine> => startEngine(script);

describe('a load test', () => {
  it('is passed by a backend that answers in time, within its caps and with the key that it wants', async () => {
    await using a = await engineThat(chat(['one', 'two']));
    await using b = await engineThat(chat(['one', 'two']));
    const { told, pass } = gateOf({
      stress: { concurrency: 6, duration: '2s', tokensIn: 20, tokensOut: 5, p99Max: '5s' },
      next: { limits: { concurrency: 3 }, auth: { bearer: 'engine-key' } },
      endpoints: [a.v1, b.v1],
    });
    const verdict = await pass();
    expect(verdict).toMatchObject({ passed: true, event: 'ev_1', reason: { code: 'stress-passed' } });
    expect(verdict.reason.figures).toMatchObject({ errors: 0, inflight: 3 });
    expect(verdict.reason.figures['answered']).toBeGreaterThan(20);
    expect(told).toMatchObject([
      { type: 'stress-passed', subject: 'release:rel_1', data: { route: 'chat', backend: 'next' } },
    ]);
    expect(Math.max(a.peak, b.peak)).toBeLessThanOrEqual(3);
    const { body } = a.posts[0]!;
    expect(JSON.parse(String(body))).toMatchObject({ model: 'm', stream: true, max_tokens: 5 });
    expect(a.posts[0]!.header('authorization')).toBe('Bearer engine-key');
  });

  it('of an open loop sends no more than the caps allow, and counts what it could not send as failed', async () => {
    await using engine = await engineThat(never);
    const { pass } = gateOf({
      stress: {
        rate: '200/s',
        duration: '500ms',
        tokensIn: 10,
        tokensOut: 10,
        tokensInFlightMax: 45,
        p99Max: '1s',
      },
      endpoints: [engine.v1],
    });
    const ending = new AbortController();
    const verdict = pass(ending.signal);
    await engine.posted(2, 10_000);
    ending.abort();
    await expect(verdict).rejects.toThrow(); // cut short, it shows nothing
    expect(engine.peak).toBe(2);
  });

  it.each([
    ['stress-errors', failWith(500), {}],
    [
      'stress-slow',
      (async (x) => {
        await x.pause(60);
        await chat()(x);
      }) satisfies Script,
      { p99Max: '20ms' },
    ],
    ['stress-errors', failWith(200, [], { choices: [] }), {}],
    ['stress-memory-unknown', chat(), { memoryMax: '1GiB' }],
  ] satisfies [string, Script, object][])('is not passed: %s', async (code, script, more) => {
    await using engine = await engineThat(script);
    const { told, pass } = gateOf({
      stress: { concurrency: 4, duration: '2s', p99Max: '5s', ...more },
      endpoints: [engine.v1],
    });
    expect(await pass()).toMatchObject({ passed: false, reason: { code } });
    expect(told).toMatchObject([{ type: 'stress-failed', data: { for: code } }]);
  });

  it('asks for tensors as the model describes them', async () => {
    await using engine = await engineThat(oipEcho);
    engine.probes = (x) => x.json({ name: 'm', inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 3] }] });
    const { pass } = gateOf({
      stress: { concurrency: 2, duration: '2s', p99Max: '5s' },
      next: { engine: 'triton', endpoints: [engine.root] },
      endpoints: [engine.root],
    });
    expect(await pass()).toMatchObject({ passed: true });
    expect(JSON.parse(String(engine.posts[0]!.body)).inputs[0]).toMatchObject({ name: 'x', shape: [1, 3] });
  });

  it('watches the memory of a host, here of this very process', async () => {
    const settings = settingsSchema.parse({
      backends: {
        b: { engine: 'sim', profile: { prefillTokensPerSecond: 1e6, decodeTokensPerSecond: 2000 } },
      },
    }).backends['b'] as SimSettings;
    const parts = { clock: systemClock, random: systemRandom, timers: systemTimers };
    const host = await serveSim({ backend: 'b', settings, ...parts, note: () => {} });
    const passing = (memoryMax: string) =>
      gateOf({
        stress: { concurrency: 4, duration: '2s', tokensOut: 4, p99Max: '5s', memoryMax },
        next: { engine: 'sim', model: 'sim' },
        endpoints: [host.address],
        pids: [process.pid],
      }).pass();
    try {
      expect(await passing('64GiB')).toMatchObject({ reason: { code: 'stress-passed' } });
      expect(await passing('1MiB')).toMatchObject({ passed: false, reason: { code: 'stress-memory' } });
    } finally {
      await host.close(0);
    }
  });

  it('rejects where there could be none, to be asked again', async () => {
    await using engine = await engineThat(answerByPath);
    engine.probes = failWith(404);
    const { pass, told } = gateOf({
      stress: { concurrency: 2, duration: '500ms', kind: 'tensors' },
      next: { engine: 'triton' },
      endpoints: [engine.root],
    });
    await expect(pass()).rejects.toThrow(/could not begin/);
    await expect(gateOf({ stress: { concurrency: 1 }, endpoints: [] }).pass()).rejects.toThrow(/no endpoint/);
    expect(told).toEqual([]);
  });
});

describe('no load is put', () => {
  const stress = { concurrency: 1, duration: '500ms' };

  it.each([
    ['a target', { search: { targets: [{ backend: 'next' }] } }],
    ['a rung', { search: { targets: [{ backend: 'now' }], ladder: [{ backend: 'next' }] } }],
  ])('on what answers callers as %s', async (_, routes) => {
    await using engine = await engineThat(answerByPath);
    const { pass } = gateOf({ stress, routes, endpoints: [engine.v1] });
    expect(await pass()).toMatchObject({
      passed: false,
      reason: { code: 'stress-on-callers', figures: { route: 'search' } },
    });
    expect(engine.posts).toEqual([]);
  });

  it('on a server that answers callers by another name', async () => {
    const { pass } = gateOf({ stress, endpoints: ['http://10.0.0.1:8000/v1'] });
    expect(await pass()).toMatchObject({
      passed: false,
      reason: { figures: { route: 'chat', backend: 'now' } },
    });
  });

  it('beyond the caps of a backend', async () => {
    const over = {
      stress: { ...stress, concurrency: 5 },
      next: { limits: { concurrency: 4 } },
      endpoints: ['http://10.0.0.2:8000/v1'],
    };
    expect(await gateOf(over).pass()).toMatchObject({
      passed: false,
      reason: { code: 'stress-over-caps', figures: { asked: 5, cap: 4 } },
    });
  });
});
