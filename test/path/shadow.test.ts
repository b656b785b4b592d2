import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chatAnswer,
  chatStream,
  type Engine,
  failing,
  NOTHING,
  never,
  status,
  VirtualGateway,
} from './virtual-gateway.ts';

/** Copies of requests: what is sent where, what becomes of it, and that no caller ever feels it. */

const [A, B, S] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.9:8000'];

function config(
  more: { route?: object; shadow?: object; percent?: number; endpoints?: string[] } = {},
): object {
  return {
    backends: {
      b1: { engine: 'vllm', model: 'm', endpoints: (more.endpoints ?? [A]).map((origin) => `${origin}/v1`) },
      next: {
        engine: 'vllm',
        model: 'next-model',
        endpoints: [`${S}/v1`],
        auth: { bearer: 'shadow-key' },
        limits: { concurrency: 2, adaptive: 'off' },
        timeouts: { firstByte: '200ms', idle: '100ms', total: '1s' },
        ...more.shadow,
      },
    },
    routes: {
      chat: {
        targets: [{ backend: 'b1' }],
        shadow: [{ backend: 'next', percent: more.percent ?? 100 }],
        deadline: '2s',
        ...more.route,
      },
    },
  };
}

function world(more: Parameters<typeof config>[0] = {}) {
  const gateway = new VirtualGateway(config(more));
  for (const origin of [A, B, S]) gateway.engines.set(origin, chatAnswer(`from ${origin}`));
  const copies = () =>
    gateway.served.filter(({ request }) => JSON.parse(String(request.body)).model === 'next-model');
  return { gateway, copies };
}

async function outcomes(gateway: VirtualGateway): Promise<Record<string, number>> {
  const metric = await gateway.registry.getSingleMetric('armature_shadow_total')!.get();
  for (const { labels } of metric.values) expect(labels).toMatchObject({ route: 'chat', backend: 'next' });
  return Object.fromEntries(metric.values.map(({ labels, value }) => [labels['outcome'], value]));
}

async function requests(gateway: VirtualGateway): Promise<number> {
  const metric = await gateway.registry.getSingleMetric('armature_requests_total')!.get();
  return metric.values.reduce((sum, { value }) => sum + value, 0);
}

describe('a shadow', () => {
  it('gets a copy after the request itself, by its own name for the model and its own key; its answer goes nowhere', async () => {
    const { gateway, copies } = world();
    const caller = gateway.chat({ temperature: 0.5 }, { 'x-request-id': 'mine' });
    expect(gateway.served).toHaveLength(1);
    await gateway.time.advance(50);
    expect(JSON.parse(caller.text).choices[0].message.content).toBe(`from ${A}`);
    expect(caller.answerHeader('x-armature-backend')).toBe('b1');
    const { request } = copies()[0]!;
    expect(String(request.body)).toBe(
      '{"model":"next-model","messages":[{"role":"user","content":"Hi"}],"temperature":0.5}',
    );
    expect(request.headers.join(' ')).toContain('authorization Bearer shadow-key');
    expect(await outcomes(gateway)).toEqual({ ok: 1 });
    expect([await requests(gateway), gateway.records.length]).toEqual([1, 1]);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it.each([
    ['says nothing', never, 1],
    ['fails', status(500), 1],
    ['is busy', status(429, {}, { 'retry-after': '9' }), 1],
    ['finds the request wrong', status(400), 1],
    ['refuses connections', failing(), 1],
    ['breaks off', failing({ kind: 'reset', unsent: false }), 1],
    ['has closed the connection', failing({ kind: 'reset', unsent: false, stale: true }), 1],
    ['falls silent', chatStream(['a', 'b', 'c', 'd'], 150), 1],
  ] satisfies [string, Engine, number][])(
    'that %s is asked once, and no caller feels it',
    async (_, engine) => {
      for (const stream of [false, true]) {
        const { gateway, copies } = world({
          endpoints: [A, B],
          route: { retry: { attempts: 3, budget: 1 } },
        });
        gateway.engines.set(S, engine);
        for (const origin of [A, B])
          gateway.engines.set(origin, stream ? chatStream(['a', 'b'], 10) : chatAnswer('x', 30));
        const caller = gateway.chat({ stream });
        await gateway.time.advance(60);
        expect([caller.status, caller.ended]).toEqual([200, true]);
        await gateway.time.advance(10_000);
        expect(copies()).toHaveLength(1);
        expect(await outcomes(gateway)).toEqual({ failed: 1 });
        expect(gateway.taken).toEqual(NOTHING);
        expect(gateway.records[0]).toMatchObject({ outcome: 'ok', attempts: 1, backend: 'b1' });
      }
    },
  );

  it('that is full, unwell or has no room for the body is passed over: nothing waits', async () => {
    const { gateway, copies } = world();
    gateway.engines.set(S, never);
    for (let i = 0; i < 5; i++) gateway.chat();
    await gateway.time.advance(50);
    expect([copies().length, gateway.taken.waiting]).toEqual([2, 0]);
    expect(await outcomes(gateway)).toEqual({ dropped: 3 });
    await gateway.time.advance(2_000);
    expect(copies()).toHaveLength(2);
    gateway.world.read({ health: { [`next|${S}/v1`]: 'unwell' } });
    gateway.chat();
    await gateway.time.advance(50);
    gateway.world.read({ health: {} });
    gateway.buffers.bytesMax = 10;
    gateway.chat();
    await gateway.time.advance(50);
    expect(await outcomes(gateway)).toEqual({ dropped: 5, failed: 2 });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('gets its percent of the requests', async () => {
    for (const percent of [0, 0.5, 30, 100]) {
      const { gateway, copies } = world({
        percent,
        shadow: { limits: { concurrency: 100, adaptive: 'off' } },
      });
      const count = 4_000;
      for (let i = 0; i < count; i++) {
        gateway.chat();
        gateway.time.run(20);
      }
      const expected = (count * percent) / 100;
      const spread = 4 * Math.sqrt(expected * (1 - percent / 100));
      expect(Math.abs(copies().length - expected)).toBeLessThanOrEqual(spread);
    }
  });

  it('gets a copy of what was sent in full, once: not of what waits, is refused, degraded or tried again', async () => {
    const { gateway, copies } = world({
      endpoints: [A, B],
      route: { retry: { attempts: 3, budget: 1 }, ladder: [{ answer: 'busy' }] },
    });
    gateway.engines.set(A, failing());
    gateway.engines.set(B, status(500));
    const caller = gateway.chat();
    await gateway.time.advance(1_000);
    expect(caller.answerHeader('x-armature-degraded')).toBe('answer');
    expect(gateway.served.length - copies().length).toBeGreaterThanOrEqual(2);
    expect(copies()).toHaveLength(1);
    gateway.path.draining = true;
    gateway.chat();
    await gateway.time.advance(50);
    expect(copies()).toHaveLength(1);
  });

  it('hears nothing of sequences, named versions and questions about models', async () => {
    const triton = (origin: string) => ({ engine: 'triton', model: origin, endpoints: [origin] });
    const gateway = new VirtualGateway({
      backends: { b1: triton(A), next: triton(S) },
      routes: { chat: { targets: [{ backend: 'b1' }], shadow: [{ backend: 'next', percent: 100 }] } },
    });
    const infer = (path: string, parameters = {}) =>
      gateway.send('POST', `/v2/models/chat${path}/infer`, { inputs: [], parameters });
    infer('', { sequence_id: 1, sequence_start: true });
    infer('/versions/2');
    gateway.send('GET', '/v2/models/chat', '');
    gateway.send('GET', '/v2/models/chat/ready', '');
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(4);
    infer('');
    await gateway.time.advance(50);
    expect(gateway.served.at(-1)!.request.path).toBe(`/v2/models/${encodeURIComponent(S)}/infer`);
  });

  it('goes on when the caller leaves, and ends by its own time limits', async () => {
    const { gateway, copies } = world();
    for (const origin of [A, S]) gateway.engines.set(origin, never);
    const caller = gateway.chat();
    await gateway.time.advance(10);
    caller.leave();
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(gateway.buffers.held).toBeGreaterThan(0); // the copy's body
    await gateway.time.advance(989);
    expect(copies()[0]!.aborted).toBe(false);
    await gateway.time.advance(2);
    expect(copies()[0]!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('holds up no drain: what is on its way ends with it', async () => {
    const { gateway, copies } = world();
    gateway.engines.set(S, never);
    gateway.chat();
    await gateway.time.advance(50);
    gateway.path.draining = true;
    expect([gateway.path.running.size, copies()[0]!.aborted]).toEqual([0, false]);
    gateway.path.endAll();
    expect(copies()[0]!.aborted).toBe(true);
    expect(await outcomes(gateway)).toEqual({ dropped: 1 });
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('judges its own endpoints alone: the breaker opens there, copies try it out, and the route stays well', async () => {
    const { gateway, copies } = world();
    gateway.engines.set(S, status(500));
    for (let i = 0; i < 8; i++) {
      gateway.chat();
      await gateway.time.advance(50);
    }
    const [of, shadow] = [...gateway.world.endpoints.values()];
    expect([of!.breaker.state, shadow!.breaker.state]).toEqual(['closed', 'open']);
    const asked = copies().length;
    gateway.engines.set(S, chatAnswer('well again'));
    await gateway.time.advance(2_000);
    gateway.chat();
    await gateway.time.advance(50);
    expect([copies().length, shadow!.breaker.state]).toEqual([asked + 1, 'closed']);
    expect(gateway.records.every(({ outcome }) => outcome === 'ok')).toBe(true);
  });

  it('may go with a new snapshot while it is asked', async () => {
    const { gateway, copies } = world();
    gateway.engines.set(S, chatAnswer('late', 100));
    gateway.chat();
    await gateway.time.advance(50);
    const without = config() as { backends: { next?: object }; routes: { chat: { shadow?: object } } };
    delete without.backends.next;
    delete without.routes.chat.shadow;
    gateway.load(without);
    gateway.chat();
    await gateway.time.advance(100);
    expect(copies()).toHaveLength(1);
    expect(await outcomes(gateway)).toEqual({ ok: 1 });
    expect([...gateway.world.endpoints.keys()]).toEqual([`b1|${A}/v1`]);
  });

  it('gives a place to a caller who waits for it, before a copy gets one', async () => {
    const of = config({ shadow: { limits: { concurrency: 1, adaptive: 'off' } } }) as { routes: object };
    const gateway = new VirtualGateway({
      ...of,
      routes: { ...of.routes, direct: { targets: [{ backend: 'next' }] } },
    });
    gateway.engines.set(A, chatAnswer('x'));
    gateway.engines.set(S, chatAnswer('x', 100));
    const direct = () => gateway.send('POST', '/v1/chat/completions', { model: 'direct', messages: [] });
    const callers = [direct(), direct()];
    gateway.chat();
    await gateway.time.advance(150);
    expect(await outcomes(gateway)).toEqual({ dropped: 1 });
    await gateway.time.advance(100);
    expect(callers.map(({ status }) => status)).toEqual([200, 200]);
    expect(gateway.taken).toEqual(NOTHING);
  });
});

it('whatever shadows do, callers get what they would without them, and nothing is kept', async () => {
  const engines: Engine[] = [
    chatAnswer('x', 20),
    chatAnswer('x', 300),
    chatStream(['a', 'b'], 20),
    status(500),
    status(429, {}, { 'retry-after': '1' }),
    failing(),
    failing({ kind: 'reset', unsent: false }, 40),
    never,
  ];
  const event = fc.record({
    engine: fc.nat(engines.length - 1),
    stream: fc.boolean(),
    gapMs: fc.nat(80),
    leavesAfterMs: fc.option(fc.nat(100), { nil: undefined, freq: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 20 }),
      fc.constantFrom(0, 50, 100),
      fc.nat(1_500),
      async (events, percent, drainsAfterMs) => {
        const { gateway } = world({ percent });
        const callers = [];
        for (const { engine, stream, gapMs, leavesAfterMs } of events) {
          gateway.engines.set(S, engines[engine]!);
          gateway.engines.set(A, stream ? chatStream(['a', 'b'], 10) : chatAnswer('x', 20));
          const caller = gateway.chat({ stream });
          if (leavesAfterMs !== undefined) gateway.time.set(leavesAfterMs, () => caller.leave());
          callers.push({ caller, left: leavesAfterMs !== undefined });
          await gateway.time.advance(gapMs);
          const shadow = [...gateway.world.endpoints.values()].find(({ backend }) => backend === 'next')!;
          expect(shadow.inflight).toBeLessThanOrEqual(2);
        }
        await gateway.time.advance(100);
        for (const { caller, left } of callers) if (!left) expect(caller.status).toBe(200);
        expect(await requests(gateway)).toBe(events.length);
        await gateway.time.advance(drainsAfterMs);
        gateway.path.draining = true;
        gateway.path.endAll();
        await gateway.time.advance(60_000);
        expect(gateway.taken).toEqual(NOTHING);
        expect(gateway.time.pending).toBe(0);
      },
    ),
    { numRuns: 100 },
  );
});
