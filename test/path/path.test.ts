import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayedRandom } from '../../src/kernel/random.ts';
import { replayable } from '../../src/policies/register.ts';
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

const A = 'http://a:1';
const B = 'http://b:1';
const C = 'http://c:1';

function config(more: { route?: object; backend?: object; endpoints?: string[] } = {}) {
  return {
    backends: {
      b1: {
        engine: 'openai',
        model: 'engine-model',
        endpoints: more.endpoints ?? [`${A}/v1`],
        ...more.backend,
      },
      b2: { engine: 'openai', model: 'other-model', endpoints: [`${C}/v1`] },
    },
    routes: { chat: { targets: [{ backend: 'b1' }], deadline: '2s', ...more.route } },
  };
}

describe('the whole path in virtual time', () => {
  it('answers a chat call, with the engine asked by its own name for the model', async () => {
    const gateway = new VirtualGateway(config());
    gateway.engines.set(A, chatAnswer('hello'));
    const caller = gateway.chat({ temperature: 0.5 });
    await gateway.time.advance(20);
    expect(caller.status).toBe(200);
    expect(JSON.parse(caller.text).choices[0].message.content).toBe('hello');
    expect(gateway.served[0]!.request.path).toBe('/v1/chat/completions');
    expect(String(gateway.served[0]!.request.body)).toBe(
      '{"model":"engine-model","messages":[{"role":"user","content":"Hi"}],"temperature":0.5}',
    );
    expect(caller.answerHeader('x-armature-backend')).toBe('b1');
    expect(gateway.records[0]).toMatchObject({
      outcome: 'ok',
      tokensIn: 3,
      tokensOut: 2,
      durationMs: 10,
      attempts: 1,
    });
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('holds a stream until its first word, and ends it with [DONE]', async () => {
    const gateway = new VirtualGateway(config());
    gateway.engines.set(A, chatStream(['one ', 'two']));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(7);
    expect(caller.status).toBeUndefined();
    await gateway.time.advance(100);
    expect(caller.status).toBe(200);
    expect(caller.text).toContain('"one "');
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(gateway.records[0]).toMatchObject({ outcome: 'ok', firstContentMs: 10 });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('goes on to the next endpoint when one refuses connections, at no cost', async () => {
    const gateway = new VirtualGateway(
      config({ endpoints: [`${A}/v1`, `${B}/v1`], route: { retry: { attempts: 1, budget: 0 } } }),
    );
    gateway.engines.set(A, failing());
    gateway.engines.set(B, chatAnswer('b'));
    const callers = Array.from({ length: 8 }, () => gateway.chat());
    await gateway.time.advance(50);
    expect(callers.map((caller) => caller.status)).toEqual(new Array(8).fill(200));
  });

  it('tries a reused connection that died again on a fresh one', async () => {
    const gateway = new VirtualGateway(config({ route: { retry: { attempts: 1 } } }));
    const good = chatAnswer('fresh');
    gateway.engines.set(A, (served) =>
      (served.request.fresh ? good : failing({ kind: 'reset', unsent: false, stale: true }))(served),
    );
    const caller = gateway.chat();
    await gateway.time.advance(50);
    expect(caller.status).toBe(200);
    expect(gateway.served).toHaveLength(2);
  });

  it('does elsewhere what an engine had at hand when it died, however much that was', async () => {
    const limits = { concurrency: 100, adaptive: 'off' };
    const gateway = new VirtualGateway(config({ endpoints: [`${A}/v1`, `${B}/v1`], backend: { limits } }));
    gateway.engines.set(A, failing({ kind: 'reset', unsent: false }, 50));
    gateway.engines.set(B, chatAnswer('b', 100));
    const callers = Array.from({ length: 80 }, () => gateway.chat());
    expect(gateway.served).toHaveLength(80);
    await gateway.time.advance(1000);
    expect(callers.filter(({ status }) => status !== 200)).toEqual([]);
  });

  it('does not let a request that kills its engines go on through all of them', async () => {
    const endpoints = Array.from({ length: 6 }, (_, at) => `http://10.1.0.${at}:8000`);
    const gateway = new VirtualGateway({
      backends: { b1: { engine: 'openai', model: 'm', endpoints: endpoints.map((each) => `${each}/v1`) } },
      routes: { chat: { targets: [{ backend: 'b1' }], deadline: '10s' } },
    });
    const killed = new Set<string>();
    for (const each of endpoints) {
      gateway.engines.set(each, (served) => {
        if (!served.request.fresh) killed.add(each);
        failing(served.request.fresh ? {} : { kind: 'reset', unsent: false, stale: true })(served);
      });
    }
    const caller = gateway.chat();
    await gateway.time.advance(10_000);
    expect([caller.status, killed.size]).toEqual([502, 3]);
  });

  it('walks down the ladder, labelled, and tells the real error when nothing is left', async () => {
    const ladder = { route: { ladder: [{ backend: 'b2' }, { answer: 'busy' }] } };
    const gateway = new VirtualGateway(config(ladder));
    gateway.engines.set(A, status(500));
    gateway.engines.set(C, chatAnswer('from b2'));
    const second = gateway.chat();
    await gateway.time.advance(100);
    expect(second.answerHeader('x-armature-degraded')).toBe('backend');
    expect(second.answerHeader('x-armature-backend')).toBe('b2');
    gateway.engines.set(C, status(500));
    const third = gateway.chat();
    await gateway.time.advance(100);
    expect(third.answerHeader('x-armature-degraded')).toBe('answer');
    expect(JSON.parse(third.text).choices[0].message.content).toBe('busy');
    const embedding = gateway.send('POST', '/v1/embeddings', { model: 'chat', input: 'x' });
    await gateway.time.advance(100);
    expect(embedding.status).toBe(502);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('lets requests wait for a place, within the queue and the deadline', async () => {
    const gateway = new VirtualGateway(
      config({ backend: { limits: { concurrency: 1 } }, route: { queue: { max: 2 } } }),
    );
    gateway.engines.set(A, chatAnswer('slow', 900));
    const callers = Array.from({ length: 5 }, () => gateway.chat());
    expect(callers.map((caller) => caller.status)).toEqual([undefined, undefined, undefined, 503, 503]);
    expect(callers[3]!.answerHeader('retry-after')).toMatch(/^[1-3]$/);
    await gateway.time.advance(2000);
    expect(callers.slice(0, 3).map((caller) => caller.status)).toEqual([200, 200, 504]);
    expect(gateway.served).toHaveLength(3);
    expect(gateway.served[2]!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
    await gateway.time.advance(2000);
    expect(gateway.time.pending).toBe(0);
  });

  it('cancels the engine when the caller leaves, waiting or served', async () => {
    const gateway = new VirtualGateway(config({ backend: { limits: { concurrency: 1 } } }));
    gateway.engines.set(A, never);
    const served = gateway.chat();
    const waiting = gateway.chat();
    waiting.leave();
    expect(gateway.served).toHaveLength(1);
    served.leave();
    expect(gateway.served[0]!.aborted).toBe(true);
    expect(gateway.records.map((record) => record.outcome)).toEqual(['aborted', 'aborted']);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('cools an endpoint that asks for it, and says when it may be asked again', async () => {
    const gateway = new VirtualGateway(config({ endpoints: [`${A}/v1`, `${B}/v1`] }));
    gateway.engines.set(A, status(429, {}, { 'retry-after': '9' }));
    gateway.engines.set(B, status(503, {}, { 'retry-after': '5' }));
    const first = gateway.chat();
    await gateway.time.advance(50);
    expect([first.status, first.answerHeader('retry-after')]).toEqual([503, '5']);
    const later = gateway.chat();
    expect([later.status, gateway.served.length]).toEqual([503, 2]);
    gateway.engines.set(B, chatAnswer('b again'));
    await gateway.time.advance(5000);
    const again = gateway.chat();
    await gateway.time.advance(50);
    expect(again.status).toBe(200);
  });

  it('opens the breaker of an endpoint that only fails, and closes it after a good trial', async () => {
    const gateway = new VirtualGateway(config());
    gateway.engines.set(A, status(500));
    for (let i = 0; i < 6; i++) {
      gateway.chat();
      await gateway.time.advance(10);
    }
    const asked = gateway.served.length;
    expect(gateway.chat().status).toBe(502);
    expect(gateway.served.length).toBe(asked);
    gateway.engines.set(A, chatAnswer('well again'));
    await gateway.time.advance(40_000);
    const trial = gateway.chat();
    await gateway.time.advance(50);
    expect(trial.status).toBe(200);
    expect(gateway.events().map(({ type }) => type)).toEqual([
      'breaker-opened',
      'breaker-tried',
      'breaker-closed',
    ]);
  });

  it('swaps a snapshot under running requests without losing them', async () => {
    const gateway = new VirtualGateway(config());
    gateway.engines.set(A, chatAnswer('old', 100));
    gateway.engines.set(B, chatAnswer('new', 100));
    const old = gateway.chat();
    gateway.load(config({ endpoints: [`${B}/v1`] }));
    const fresh = gateway.chat();
    await gateway.time.advance(200);
    expect([old, fresh].map((caller) => JSON.parse(caller.text).choices[0].message.content)).toEqual([
      'old',
      'new',
    ]);
    expect(gateway.records.map((record) => record.snapshot)).toEqual([1, 2]);
    expect([...gateway.world.endpoints.keys()].sort()).toEqual([`b1|${B}/v1`, `b2|${C}/v1`]);
  });

  it('takes requests that wait along to the endpoints of a new snapshot', async () => {
    const narrow = (endpoint: string) =>
      config({ endpoints: [endpoint], backend: { limits: { concurrency: 1 } } });
    const gateway = new VirtualGateway(narrow(`${A}/v1`));
    gateway.engines.set(A, chatAnswer('old', 100));
    gateway.engines.set(B, chatAnswer('new', 100));
    const callers = [gateway.chat(), gateway.chat(), gateway.chat()];
    gateway.load(narrow(`${B}/v1`));
    await gateway.time.advance(250);
    const words = callers.map((caller) => JSON.parse(caller.text).choices[0].message.content);
    expect(words).toEqual(['old', 'new', 'new']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('records decisions that replay bit by bit', async () => {
    const gateway = new VirtualGateway(
      {
        ...config({ endpoints: [`${A}/v1`, `${B}/v1`] }),
        routes: {
          chat: {
            targets: [
              { backend: 'b1', weight: 3 },
              { backend: 'b2', weight: 1 },
            ],
          },
        },
      },
      7,
    );
    for (const origin of [A, B, C]) gateway.engines.set(origin, chatAnswer('x'));
    for (let i = 0; i < 50; i++) gateway.chat();
    await gateway.time.advance(50);
    const decisions = gateway.records
      .flatMap((record) => record.steps)
      .filter((step) => step.policy !== undefined);
    expect(decisions.length).toBeGreaterThan(50);
    for (const step of decisions) {
      const recorded = JSON.parse(JSON.stringify(step)) as typeof step;
      const [name, version] = recorded.policy!.split('@');
      const policy = replayable.get(name!)!;
      expect(policy.version).toBe(Number(version));
      const again = policy.replay(recorded.input, replayedRandom(recorded.draws!)) as {
        reason: { code: string; figures: object };
      };
      expect({ code: again.reason.code, figures: again.reason.figures }).toEqual({
        code: recorded.code,
        figures: recorded.figures,
      });
    }
  });

  it('gives everything back and answers everybody once, whatever engines and callers do', async () => {
    const behaviours: Engine[] = [
      chatAnswer('ok', 30),
      chatStream(['a', 'b', 'c'], 20),
      failing(),
      failing({ kind: 'reset', unsent: false }, 40),
      failing({ kind: 'reset', unsent: false, stale: true }),
      status(500),
      status(429, {}, { 'retry-after': '1' }),
      status(400),
      never,
    ];
    const event = fc.record({
      afterMs: fc.integer({ min: 0, max: 300 }),
      a: fc.nat(behaviours.length - 1),
      b: fc.nat(behaviours.length - 1),
      c: fc.nat(behaviours.length - 1),
      stream: fc.boolean(),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 1500 }), { nil: undefined }),
      deadlineMs: fc.option(fc.integer({ min: 1, max: 1500 }), { nil: undefined }),
      swap: fc.option(fc.subarray([`${A}/v1`, `${B}/v1`], { minLength: 1 }), { nil: undefined, freq: 4 }),
    });
    const world = fc.record({
      events: fc.array(event, { minLength: 1, maxLength: 25 }),
      concurrency: fc.integer({ min: 1, max: 3 }),
      queue: fc.integer({ min: 0, max: 4 }),
      ladder: fc.boolean(),
      seed: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(world, async ({ events, concurrency, queue, ladder, seed }) => {
        const settings = (endpoints: string[]) =>
          config({
            endpoints,
            backend: {
              limits: { concurrency },
              timeouts: { firstByte: '700ms', idle: '500ms', total: '900ms' },
            },
            route: { queue: { max: queue }, ladder: ladder ? [{ backend: 'b2' }, { answer: 'busy' }] : [] },
          });
        const gateway = new VirtualGateway(settings([`${A}/v1`, `${B}/v1`]), seed);
        const callers = [];
        for (const each of events) {
          await gateway.time.advance(each.afterMs);
          if (each.swap) gateway.load(settings(each.swap));
          gateway.engines.set(A, behaviours[each.a]!);
          gateway.engines.set(B, behaviours[each.b]!);
          gateway.engines.set(C, behaviours[each.c]!);
          const headers =
            each.deadlineMs === undefined ? {} : { 'x-armature-deadline-ms': String(each.deadlineMs) };
          const caller = gateway.chat({ stream: each.stream }, headers);
          const { leavesAfterMs } = each;
          if (leavesAfterMs !== undefined) gateway.time.set(leavesAfterMs, () => caller.leave());
          callers.push({ caller, left: leavesAfterMs !== undefined });
          for (const endpoint of gateway.world.endpoints.values()) {
            if (endpoint.backend === 'b1') expect(endpoint.inflight).toBeLessThanOrEqual(concurrency);
          }
        }
        await gateway.time.advance(60_000);
        for (const { caller, left } of callers) expect(caller.ended || left).toBe(true);
        expect(gateway.records).toHaveLength(events.length);
        expect(gateway.taken).toEqual(NOTHING);
        // What still waits belongs to fenced endpoints, never to a request.
        expect(gateway.time.pending).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});
