import { describe, expect, it } from 'vitest';
import { backendOf, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { answerByPath, answerProbes, delayed, failWith, never } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** Health, breakers and the count of what runs, as they go wrong in the field. */

const whole = { path: '/v1/chat/completions', body: chatBody() };
const tensor = { path: '/v2/models/tensor/infer', body: { inputs: [] } };

describe('faults of callers', () => {
  it('count against no endpoint, keep their words, and are not tried again', async () => {
    let status = 400;
    const reason = { message: 'reason', type: 'invalid_request_error', param: 'messages', code: 'c' };
    await using engine = await startEngine((x) =>
      failWith(status, [], { error: x.request.path.startsWith('/v2') ? reason.message : reason })(x),
    );
    await using armature = await startArmature({
      backends: { b1: backendOf(engine), t1: backendOf(engine, { engine: 'oip' }) },
      routes: { chat: { targets: [{ backend: 'b1' }] }, tensor: { targets: [{ backend: 't1' }] } },
    });
    for (status of [400, 404, 409, 413, 415, 422]) {
      for (let i = 0; i < 15; i++) {
        const chat = await armature.ask(whole);
        expect([chat.status, chat.error]).toEqual([status, reason]);
        const infer = await armature.ask(tensor);
        expect([infer.status, infer.json()]).toEqual([status, { error: reason.message }]);
      }
    }
    expect(engine.posts).toHaveLength(180);
    expect(await armature.metric('armature_breaker_state')).toBe(0);
    engine.script = answerByPath;
    expect((await armature.ask(whole)).status).toBe(200);
  });
});

describe('an endpoint that fails', () => {
  it('is fenced after some failures, and comes back by itself', async () => {
    await using bad = await startEngine(failWith(500));
    await using good = await startEngine();
    await using armature = await startArmature(
      plainConfig([bad, good], { route: { retry: { attempts: 2, budget: 1 } } }),
    );
    for (let i = 0; i < 60; i++) expect((await armature.ask(whole)).status).toBe(200);
    expect(bad.posts.length).toBeLessThan(20);
    expect(await armature.metric('armature_breaker_state')).toBeGreaterThan(0);
    bad.script = answerByPath;
    const count = bad.posts.length;
    const taken = async () => {
      await armature.ask(whole);
      return bad.posts.length > count + 3;
    };
    await eventually('it gets traffic again', taken, 40_000);
    expect(await armature.metric('armature_breaker_state')).toBe(0);
  });

  it('by its probes gets no traffic, though it would answer; and comes back with them', async () => {
    await using sick = await startEngine();
    await using well = await startEngine();
    sick.probes = failWith(503);
    const probe = { every: '100ms', healthy: 2, unhealthy: 2 };
    await using armature = await startArmature(
      plainConfig([sick, well], { backend: { engine: 'vllm', probe } }),
    );
    await eventually('two probes have failed', () => sick.requests.length >= 3);
    const ready = async () => {
      const before = sick.posts.length;
      for (let i = 0; i < 10; i++) await armature.ask(whole);
      return sick.posts.length === before;
    };
    await eventually('ten requests pass it over', ready);
    sick.probes = answerProbes;
    await eventually('it is asked again', async () => !(await ready()), 10_000);
  });
});

describe('probes', () => {
  it('are never an inference, go to the path that the engine wants, and keep their distance', async () => {
    await using vllm = await startEngine();
    await using triton = await startEngine();
    const probe = { every: '50ms' };
    await using _armature = await startArmature({
      backends: {
        b1: backendOf(vllm, { engine: 'vllm', probe }),
        t1: backendOf(triton, { engine: 'triton', probe }),
      },
      routes: { chat: { targets: [{ backend: 'b1' }] }, tensor: { targets: [{ backend: 't1' }] } },
    });
    const probes = () => vllm.requests.filter((request) => request.path === '/health');
    await eventually('twenty probes', () => probes().length >= 20);
    expect(vllm.posts).toEqual([]);
    expect(triton.posts).toEqual([]);
    expect(new Set(triton.requests.map((request) => request.path))).toContain('/v2/health/ready');
    const gapsMs = probes()
      .map((request, i) => request.headAtMs - (probes()[i - 1]?.headAtMs ?? 0))
      .slice(1);
    // Jitter: no two gates of many fall together for long.
    expect(Math.max(...gapsMs) - Math.min(...gapsMs)).toBeGreaterThan(5);
  });
});

describe('the count of what runs', () => {
  it('holds the cap for as long as a request lives, and is given back in full', async () => {
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const held: Script = async (x) => {
      await gate;
      await answerByPath(x);
    };
    await using engine = await startEngine(held);
    const backend = { limits: { concurrency: 3 } };
    await using armature = await startArmature(
      plainConfig(engine, { backend, route: { queue: { max: 5 } } }),
    );
    const answers = Array.from({ length: 12 }, () => armature.ask(whole));
    await engine.posted(3);
    await eventually('five wait', async () => (await armature.metric('armature_queue_depth')) === 5);
    expect(await armature.metric('armature_inflight', { backend: 'b1' })).toBe(3);
    open();
    const statuses = (await Promise.all(answers)).map((answer) => answer.status).sort();
    expect(statuses).toEqual([...Array(8).fill(200), ...Array(4).fill(503)]);
    expect(engine.peak).toBe(3);
    await armature.idle();
  });

  it('is shared by chat and tensors on one endpoint of one backend, and zero after every way out', async () => {
    const scripts = [answerByPath, failWith(400), failWith(500), failWith(503), never, delayed(50)];
    let turn = 0;
    await using engine = await startEngine((x) => scripts[turn++ % scripts.length]!(x));
    const config = {
      backends: { b1: backendOf(engine), t1: backendOf(engine, { engine: 'oip' }) },
      routes: { chat: { targets: [{ backend: 'b1' }] }, tensor: { targets: [{ backend: 't1' }] } },
    };
    await using armature = await startArmature(config);
    const headers = [['x-armature-deadline-ms', '400']] as const;
    const requests = Array.from({ length: 40 }, (_, i) =>
      armature.ask({ ...(i % 2 ? whole : tensor), headers }),
    );
    expect((await Promise.all(requests)).map((answer) => answer.fault)).toEqual(Array(40).fill(undefined));
    await armature.idle();
  });
});
