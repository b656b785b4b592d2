import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { A, bodyOf, gatewayOf } from './batching-world.ts';
import { type Engine, NOTHING, never } from './virtual-gateway.ts';

/** Tensors of several callers, sent upstream as one request. */

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
