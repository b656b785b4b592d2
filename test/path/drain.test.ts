import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chatAnswer,
  chatStream,
  type Engine,
  NOTHING,
  never,
  status,
  VirtualGateway,
} from './virtual-gateway.ts';

/** The end of a worker: nobody new, those who run may finish, the rest is told to come again. */

const A = 'http://10.0.0.1:8000';

function world(more: { backend?: object; route?: object } = {}) {
  return new VirtualGateway({
    backends: { b1: { engine: 'vllm', model: 'm', endpoints: [`${A}/v1`], ...more.backend } },
    routes: { chat: { targets: [{ backend: 'b1' }], deadline: '60s', ...more.route } },
  });
}

/** A document so long that it is passed on before it is whole, and that never ends. */
const endless: Engine = (served) => {
  served.time.set(1, () => {
    served.sink.onHead(200, { 'content-type': 'application/json' });
    served.sink.onData(Buffer.from(`{"choices":[{"message":{"content":"${'x'.repeat(2 ** 21)}`));
  });
};

describe('a worker that drains', () => {
  it('refuses who comes, and lets finish who runs or waits', async () => {
    const gateway = world({ backend: { limits: { concurrency: 1 } } });
    gateway.engines.set(A, chatStream(['a', 'b'], 20));
    const running = gateway.chat({ stream: true });
    const waiting = gateway.chat({ stream: true });
    await gateway.time.advance(30);
    gateway.path.draining = true;
    const late = [gateway.chat(), gateway.send('POST', '/v2/models/chat/infer', { inputs: [] })];
    for (const caller of late) {
      expect(caller.status).toBe(503);
      expect(caller.answerHeader('connection')).toBe('close');
      expect(Number(caller.answerHeader('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    expect(JSON.parse(late[0]!.text).error).toMatchObject({ code: 'draining', type: 'overloaded_error' });
    expect(typeof JSON.parse(late[1]!.text).error).toBe('string');
    await gateway.time.advance(1_000);
    for (const caller of [running, waiting]) expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(gateway.served).toHaveLength(2);
  });

  it('tells those who are left when its time is over: a status, an error event, or a cut that is seen', async () => {
    const gateway = world({ backend: { limits: { concurrency: 3 } } });
    gateway.engines.set(A, chatStream(['a', ...Array(1000).fill('b')], 20));
    const streamed = gateway.chat({ stream: true });
    gateway.engines.set(A, endless);
    const cut = gateway.chat();
    gateway.engines.set(A, never);
    const silent = gateway.chat();
    const waiting = gateway.chat({ stream: true });
    await gateway.time.advance(100);
    expect([streamed.status, cut.status, silent.status, waiting.status]).toEqual([
      200,
      200,
      undefined,
      undefined,
    ]);
    gateway.path.draining = true;
    gateway.path.endAll();
    for (const caller of [silent, waiting]) {
      expect([caller.status, JSON.parse(caller.text).error.code]).toEqual([503, 'draining']);
      expect(caller.answerHeader('retry-after')).toBeDefined();
      expect(caller.answerHeader('x-should-retry')).not.toBe('false');
      expect(caller.answerHeader('connection')).toBe('close');
    }
    const last = streamed.text.trimEnd().split('data: ').at(-1)!;
    expect([streamed.ended, JSON.parse(last).error.code]).toEqual([true, 'draining']);
    expect([cut.destroyed, streamed.destroyed]).toEqual([true, false]);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.records).toHaveLength(4);
  });

  it('has nothing left to give back, whenever it ends', async () => {
    const engines = [
      chatAnswer('x', 50),
      chatStream(['a', 'b', 'c'], 15),
      never,
      endless,
      status(500),
      status(503),
    ];
    const call = fc.record({
      engine: fc.nat(engines.length - 1),
      stream: fc.boolean(),
      full: fc.boolean(),
      gapMs: fc.nat(60),
    });
    const input = fc.record({
      calls: fc.array(call, { minLength: 1, maxLength: 15 }),
      concurrency: fc.integer({ min: 1, max: 4 }),
      drainsAfterMs: fc.nat(200),
    });
    await fc.assert(
      fc.asyncProperty(input, async ({ calls, concurrency, drainsAfterMs }) => {
        const gateway = world({ backend: { limits: { concurrency } }, route: { queue: { max: 5 } } });
        const callers = [];
        for (const { engine, stream, full, gapMs } of calls) {
          gateway.engines.set(A, engines[engine]!);
          const caller = gateway.chat({ stream });
          caller.full = full;
          callers.push(caller);
          await gateway.time.advance(gapMs);
        }
        gateway.path.draining = true;
        await gateway.time.advance(drainsAfterMs);
        gateway.path.endAll();
        for (const caller of callers) expect(caller.ended).toBe(true);
        expect(gateway.taken).toEqual(NOTHING);
        expect(gateway.records).toHaveLength(callers.length);
      }),
      { numRuns: 200 },
    );
  });
});
