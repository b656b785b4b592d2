import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { A, bodyOf, type EmbeddingsAsked, embeddings, gatewayOf, vectorOf } from './batching-world.ts';
import { failing, NOTHING, status, type VirtualCaller } from './virtual-gateway.ts';

/** Embeddings of several callers, sent upstream as one request. */

const rowsOf = (caller: VirtualCaller) => {
  const { data } = JSON.parse(caller.text) as { data: { index: number; embedding: unknown }[] };
  data.sort((a, b) => a.index - b.index);
  expect(data.map(({ index }) => index)).toEqual([...data.keys()]);
  return data.map(({ embedding }) => embedding);
};

describe('embeddings sent as one', () => {
  it('give each caller its own rows, its own id and its share of the tokens', async () => {
    const { gateway, embed } = gatewayOf();
    const callers = [embed('one'), embed(['two', 'three is longer']), embed(['four'])];
    await gateway.time.advance(50);
    expect(gateway.served.map(({ request }) => bodyOf(request)['input'])).toEqual([
      ['one', 'two', 'three is longer', 'four'],
    ]);
    expect(callers.map(rowsOf)).toEqual([
      [vectorOf('one')],
      [vectorOf('two'), vectorOf('three is longer')],
      [vectorOf('four')],
    ]);
    const answers = callers.map(
      ({ text }) => JSON.parse(text) as { id: string; usage: { prompt_tokens: number } },
    );
    expect(new Set(answers.map(({ id }) => id)).size).toBe(3);
    expect(answers.reduce((sum, { usage }) => sum + usage.prompt_tokens, 0)).toBe(40);
    expect(gateway.records.reduce((sum, { tokensIn }) => sum + tokensIn!, 0)).toBe(40);
    expect(callers.map((caller) => caller.answerHeader('x-armature-backend'))).toEqual(['b1', 'b1', 'b1']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('go no later than the delay, nor than half of the time that one of them has', async () => {
    const { gateway, embed } = gatewayOf({ delay: '20ms' });
    const one = embed('one');
    await gateway.time.advance(19);
    expect(gateway.served).toHaveLength(0);
    await gateway.time.advance(1);
    expect(gateway.served).toHaveLength(1);
    embed('two');
    const hasty = embed('three', {}, { 'x-armature-deadline-ms': '16' });
    await gateway.time.advance(8);
    expect(gateway.served).toHaveLength(2);
    await gateway.time.advance(50);
    expect([one.status, hasty.status]).toEqual([200, 504]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('go at once when there are enough of them, and never more', async () => {
    const { gateway, embed } = gatewayOf({ max: 4, delay: '1s' });
    for (const input of [
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f', 'g'],
      ['h', 'i'],
      ['j', 'k', 'l', 'm', 'n'],
    ])
      embed(input);
    const sizes = gateway.served.map(({ request }) => (bodyOf(request)['input'] as unknown[]).length);
    expect(sizes).toEqual([4, 3, 5]);
    await gateway.time.advance(2000);
    expect(gateway.served).toHaveLength(4);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('join only those that agree in everything else, of one tenant', async () => {
    const { gateway, embed } = gatewayOf({}, { tenants: { a: {}, b: {} } });
    gateway.world.keys = { tenantOf: (key: string) => key } as never;
    const as = (tenant: string) => ({ authorization: `Bearer ${tenant}` });
    embed('1', {}, as('a'));
    embed('2', {}, as('b'));
    embed('3', { dimensions: 2 }, as('a'));
    embed([1, 2], {}, as('a'));
    embed('4', { user: 'u' }, as('a'));
    embed('5', {}, as('a'));
    await gateway.time.advance(50);
    expect(gateway.served.map(({ request }) => bodyOf(request)['input'])).toEqual([
      ['1', '5'],
      '2',
      '3',
      [1, 2],
      '4',
    ]);
  });

  it('join tenants where the route says so', async () => {
    const { gateway, embed } = gatewayOf({ acrossTenants: true }, { tenants: { a: {}, b: {} } });
    gateway.world.keys = { tenantOf: (key: string) => key } as never;
    for (const tenant of ['a', 'b']) embed(tenant, {}, { authorization: `Bearer ${tenant}` });
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(1);
  });

  it('give an error to who caused it, and to nobody else', async () => {
    const { gateway, embed } = gatewayOf();
    const [good, bad, fine] = [embed('good'), embed('bad'), embed('fine')];
    await gateway.time.advance(50);
    expect([good.status, bad.status, fine.status]).toEqual([200, 400, 200]);
    expect(bad.text).toContain('bad input');
    expect(rowsOf(fine)).toEqual([vectorOf('fine')]);
    expect(gateway.served).toHaveLength(4);
    expect(gateway.records.map(({ outcome }) => outcome).sort()).toEqual(['invalid', 'ok', 'ok']);
  });

  it('ask an engine that fails no more often than for one caller', async () => {
    for (const engine of [failing(), status(503), status(500)]) {
      const { gateway, embed } = gatewayOf();
      gateway.engines.set(A, engine);
      const callers = Array.from({ length: 10 }, (_, i) => embed(`${i}`));
      await gateway.time.advance(5000);
      expect(callers.every(({ status: got }) => got === 502 || got === 503)).toBe(true);
      expect(gateway.served.length).toBeLessThanOrEqual(2);
      expect(gateway.taken).toEqual(NOTHING);
    }
  });

  it('are sent by themselves where answers to joined ones cannot be taken apart', async () => {
    const { gateway, embed } = gatewayOf();
    gateway.engines.set(A, (served) => {
      const { request, sink, time } = served;
      const { input } = bodyOf(request) as unknown as EmbeddingsAsked;
      if (!Array.isArray(input)) return embeddings(served);
      time.set(1, () => {
        sink.onHead(200, { 'content-type': 'application/json' });
        sink.onData(Buffer.from('{"data":[{"index":0,"embedding":[1]}]}'));
        sink.onEnd();
      });
    });
    for (let round = 0; round < 5; round++) {
      const callers = [embed('one'), embed('two')];
      await gateway.time.advance(50);
      expect(callers.map(rowsOf)).toEqual([[vectorOf('one')], [vectorOf('two')]]);
    }
    expect(gateway.served).toHaveLength(3 * 3 + 2 * 2); // after three in vain they are not joined any more
    await gateway.time.advance(60_000);
    embed('one');
    embed('two');
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(13 + 3);
  });

  it('have the highest priority and go on without those who leave', async () => {
    const { gateway, embed } = gatewayOf();
    const callers = [embed('one'), embed('two'), embed('three')];
    callers[0]!.leave();
    await gateway.time.advance(6);
    callers[1]!.leave();
    await gateway.time.advance(50);
    expect(rowsOf(callers[2]!)).toEqual([vectorOf('three')]);
    const both = [embed('four'), embed('five')];
    await gateway.time.advance(6);
    for (const caller of both) caller.leave();
    expect(gateway.served.at(-1)!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('come back whole from an answer too long to be held, and are refused where it breaks off', async () => {
    for (const breaks of [false, true]) {
      const { gateway, embed } = gatewayOf();
      gateway.engines.set(A, (served) => {
        const { input } = bodyOf(served.request) as unknown as { input: string[] };
        const long = Array.from({ length: 100_000 }, (_, i) => i);
        const data = input.map((each, index) => ({ index, embedding: [each, ...long] }));
        const body = Buffer.from(JSON.stringify({ object: 'list', data }));
        served.time.set(1, () => served.sink.onHead(200, { 'content-type': 'application/json' }));
        served.time.set(2, () => served.sink.onData(body.subarray(0, 1_100_000)));
        served.time.set(3, () => {
          if (breaks) served.sink.onError({ kind: 'reset', message: '', unsent: false, stale: false });
          else served.sink.onData(body.subarray(1_100_000));
        });
        if (!breaks) served.time.set(4, () => served.sink.onEnd());
      });
      const callers = [embed('one'), embed('two')];
      await gateway.time.advance(50);
      expect(gateway.served).toHaveLength(1);
      if (breaks) expect(callers.map((caller) => caller.status)).toEqual([502, 502]);
      else expect(callers.map((caller) => (rowsOf(caller)[0] as unknown[])[0])).toEqual(['one', 'two']);
      expect(gateway.taken).toEqual(NOTHING);
    }
  });

  it('are right for any sizes, any leavers, any order', async () => {
    const inputs = fc.oneof(
      fc.string(),
      fc.array(fc.string(), { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
      fc.array(fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
    );
    const caller = fc.record({
      input: inputs.filter((input) => !JSON.stringify(input).includes('bad')),
      waitMs: fc.nat(4),
      leavesAfterMs: fc.option(fc.nat(20)),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(caller, { minLength: 1, maxLength: 15 }),
        fc.integer({ min: 2, max: 9 }),
        async (plan, max) => {
          const { gateway, embed } = gatewayOf({ max });
          const callers: { sent: VirtualCaller; input: unknown; left: boolean }[] = [];
          for (const { input, waitMs, leavesAfterMs } of plan) {
            await gateway.time.advance(waitMs);
            const one = { sent: embed(input), input, left: false };
            callers.push(one);
            if (leavesAfterMs !== null)
              gateway.time.set(leavesAfterMs, () => {
                if (one.sent.ended) return;
                one.left = true;
                one.sent.leave();
              });
          }
          await gateway.time.advance(1000);
          for (const { sent, input, left } of callers) {
            if (left) continue;
            const list = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input];
            expect(rowsOf(sent)).toEqual(list.map(vectorOf));
          }
          expect(gateway.taken).toEqual(NOTHING);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('batches beside the rest', () => {
  it('keep and share answers as well', async () => {
    const { gateway } = gatewayOf();
    gateway.load({
      backends: { b1: { engine: 'vllm', model: 'm', endpoints: [`${A}/v1`], limits: { concurrency: 8 } } },
      routes: { embed: { targets: [{ backend: 'b1' }], batch: {}, cache: {}, singleFlight: true } },
    });
    const embed = (input: unknown) => gateway.send('POST', '/v1/embeddings', { model: 'embed', input });
    const callers = ['a', 'b', 'a', 'b', 'c'].map(embed);
    await gateway.time.advance(50);
    expect(gateway.served.map(({ request }) => bodyOf(request)['input'])).toEqual([['a', 'b', 'c']]);
    expect(callers.map((caller) => rowsOf(caller)[0])).toEqual(['a', 'b', 'a', 'b', 'c'].map(vectorOf));
    const later = embed('b');
    expect(rowsOf(later)).toEqual([vectorOf('b')]);
    expect(gateway.served).toHaveLength(1);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
