import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Engine,
  failing,
  NOTHING,
  never,
  status,
  type VirtualCaller,
  VirtualGateway,
} from './virtual-gateway.ts';

/** Embeddings and tensors of several callers, sent upstream as one request. */

const A = 'http://10.0.0.1:8000';
type Json = Record<string, unknown>;

interface EmbeddingsAsked {
  input: string | (string | number[])[] | number[];
}

const bodyOf = (request: { body: Buffer | string | undefined }) =>
  JSON.parse(request.body!.toString()) as Json;

/** What the engine makes of an input: something that tells it from any other. */
const vectorOf = (input: unknown) => [JSON.stringify(input).length, JSON.stringify(input)];

/** Answers as OpenAI does, rows in any order; refuses a request in which `bad` stands. */
const embeddings: Engine = (served) => {
  const { request, sink, time } = served;
  const { input } = bodyOf(request) as unknown as EmbeddingsAsked;
  const list = typeof input === 'string' || typeof input[0] === 'number' ? [input] : (input as unknown[]);
  if (JSON.stringify(list).includes('bad')) {
    const error = { message: 'bad input', type: 'invalid_request_error', param: 'input', code: null };
    status(400, { error })(served);
    return;
  }
  const data = list
    .map((each, index) => ({ object: 'embedding', index, embedding: vectorOf(each) }))
    .reverse();
  const tokens = list.length * 10;
  time.set(10, () => {
    if (served.aborted) return;
    sink.onHead(200, { 'content-type': 'application/json' });
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    sink.onData(
      Buffer.from(JSON.stringify({ id: 'embd-engine', object: 'list', data, model: 'm', usage }, null, 1)),
    );
    sink.onEnd();
  });
};

function gatewayOf(batch: object = {}, more: object = {}) {
  const gateway = new VirtualGateway({
    backends: {
      b1: { engine: 'vllm', model: 'm', endpoints: [`${A}/v1`], limits: { concurrency: 8 } },
      t1: { engine: 'triton', model: 'm', endpoints: [A], limits: { concurrency: 8 } },
    },
    routes: {
      embed: { targets: [{ backend: 'b1' }], batch },
      infer: { targets: [{ backend: 't1' }], batch },
    },
    ...more,
  });
  gateway.engines.set(A, embeddings);
  const embed = (input: unknown, rest: object = {}, headers = {}) =>
    gateway.send('POST', '/v1/embeddings', { model: 'embed', input, ...rest }, headers);
  return { gateway, embed };
}

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

/** Doubles every element; answers flat or nested. */
const doubling =
  (nested: boolean, rank = 2): Engine =>
  ({ request, sink, time }) => {
    const { inputs, id } = bodyOf(request) as {
      inputs: { shape: number[]; data: unknown[]; name: string }[];
      id?: string;
    };
    const outputs = inputs.map(({ name, shape, data }) => {
      const flat = (data.flat(9) as number[]).map((value) => value * 2);
      const rows = Array.from({ length: shape[0]! }, (_, row) =>
        flat.slice(row * shape[1]!, (row + 1) * shape[1]!),
      );
      return {
        name: `${name}-out`,
        datatype: 'FP64',
        shape: shape.slice(0, rank),
        data: nested ? rows : flat,
      };
    });
    time.set(10, () => {
      sink.onHead(200, { 'content-type': 'application/json' });
      sink.onData(
        Buffer.from(JSON.stringify({ model_name: 'm', ...(id === undefined ? {} : { id }), outputs })),
      );
      sink.onEnd();
    });
  };

describe('tensors sent as one', () => {
  const tensor = (rows: number[][], nested: boolean, more: object = {}) => ({
    inputs: [
      {
        name: 'x',
        datatype: 'FP64',
        shape: [rows.length, rows[0]!.length],
        data: nested ? rows : rows.flat(),
      },
    ],
    ...more,
  });

  it('give each caller its own rows and its own id', async () => {
    for (const nested of [true, false]) {
      const { gateway } = gatewayOf();
      gateway.engines.set(A, doubling(nested));
      const infer = (body: object) => gateway.send('POST', '/v2/models/infer/infer', body);
      const callers = [
        infer(tensor([[1, 2]], nested, { id: 'mine' })),
        infer(
          tensor(
            [
              [3, 4],
              [5, 6],
            ],
            nested,
          ),
        ),
        infer(tensor([[7]], nested)),
      ];
      await gateway.time.advance(50);
      expect(gateway.served).toHaveLength(2);
      const outputs = callers.map(
        ({ text }) => JSON.parse(text) as { id?: string; outputs: { shape: number[]; data: unknown[] }[] },
      );
      expect(outputs.map(({ id }) => id)).toEqual(['mine', undefined, undefined]);
      expect(outputs.map(({ outputs: [out] }) => [out!.shape, out!.data.flat()])).toEqual([
        [
          [1, 2],
          [2, 4],
        ],
        [
          [2, 2],
          [6, 8, 10, 12],
        ],
        [[1, 1], [14]],
      ]);
      expect(gateway.taken).toEqual(NOTHING);
    }
  });

  it('keep numbers as they were written', async () => {
    const { gateway } = gatewayOf();
    gateway.engines.set(A, never);
    const infer = (data: string) =>
      gateway.send(
        'POST',
        '/v2/models/infer/infer',
        `{"inputs":[{"name":"x","datatype":"INT64","shape":[1],"data":${data}}]}`,
      );
    infer('[9007199254740993]');
    infer('[ 1 ]');
    await gateway.time.advance(6);
    expect(gateway.served[0]!.request.body!.toString()).toContain('"data":[9007199254740993,1]');
  });

  it('go by themselves where their rows cannot be told for certain, or they agree with nobody', async () => {
    const { gateway } = gatewayOf();
    gateway.engines.set(A, doubling(true));
    const infer = (body: object, path = 'infer') => gateway.send('POST', `/v2/models/infer/${path}`, body);
    infer(tensor([[1, 2]], true));
    infer({ inputs: [{ name: 'x', datatype: 'FP64', shape: [2, 2], data: [[1], [2, 3, 4]] }] });
    infer({ inputs: [{ name: 'x', datatype: 'FP64', shape: [1, 2], data: [1, 2, 3] }] });
    infer(tensor([[1, 2]], true, { parameters: { sequence_id: 4, sequence_start: true } }));
    infer(tensor([[1, 2]], true, { parameters: { priority: 1 } }));
    infer(tensor([[1, 2]], true, { outputs: [{ name: 'y' }] }));
    infer(tensor([[1, 2]], true), 'versions/2/infer');
    infer(tensor([[1, 2]], true, { outputs: [{ name: 'y', parameters: { binary_data: true } }] }));
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(8);
  });

  it('are right for any sizes, nested or flat', async () => {
    const rows = fc.array(fc.tuple(fc.integer(), fc.integer()), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(rows, fc.boolean()), { minLength: 1, maxLength: 10 }),
        fc.boolean(),
        async (plan, nested) => {
          const { gateway } = gatewayOf({ max: 12 });
          gateway.engines.set(A, doubling(nested));
          const callers = plan.map(([list, flat]) =>
            gateway.send('POST', '/v2/models/infer/infer', tensor(list, !flat)),
          );
          await gateway.time.advance(200);
          for (const [at, caller] of callers.entries()) {
            const { outputs } = JSON.parse(caller.text) as {
              outputs: { shape: number[]; data: unknown[] }[];
            };
            expect(outputs[0]!.data.flat()).toEqual(plan[at]![0].flat().map((value) => value * 2));
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
