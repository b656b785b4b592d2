import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { A, bodyOf, gatewayOf } from './batching-world.ts';
import { type Engine, NOTHING, never, VirtualCaller, type VirtualGateway } from './virtual-gateway.ts';

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

/** A caller that keeps what it is given as bytes. */
class RawCaller extends VirtualCaller {
  bytes: Buffer = Buffer.alloc(0);
  override respond(status: number, headers: string[], body: Buffer | string): void {
    this.bytes = Buffer.from(body);
    super.respond(status, headers, body);
  }
}

/** A text as an element of BYTES. */
function element(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const HEADER = 'inference-header-content-length';

/** Gives back what it gets, raw. */
const rawEcho: Engine = ({ request, sink, time }) => {
  const at = request.headers.indexOf(HEADER);
  const jsonBytes = Number(request.headers[at + 1]);
  const body = request.body as Buffer;
  const { inputs } = JSON.parse(body.toString('utf8', 0, jsonBytes)) as { inputs: object[] };
  const json = Buffer.from(JSON.stringify({ model_name: 'm', outputs: inputs }, null, 1));
  time.set(10, () => {
    sink.onHead(200, { 'content-type': 'application/octet-stream', [HEADER]: String(json.length) });
    sink.onData(Buffer.concat([json, body.subarray(jsonBytes)]));
    sink.onEnd();
  });
};

describe('raw tensors sent as one', () => {
  interface Raw {
    texts: string[][];
    floats: number[];
  }

  function send(gateway: VirtualGateway, { texts, floats }: Raw, more: object = {}): RawCaller {
    const first = Buffer.concat(texts.flat().map(element));
    const second = Buffer.from(new Float32Array(floats).buffer);
    const shape = [texts.length, 2];
    const json = Buffer.from(
      JSON.stringify({
        inputs: [
          { name: 't', datatype: 'BYTES', shape, parameters: { binary_data_size: first.length } },
          {
            name: 'f',
            datatype: 'FP32',
            shape: [floats.length],
            parameters: { binary_data_size: second.length },
          },
        ],
        ...more,
      }),
    );
    const headers = { [HEADER]: String(json.length), 'content-type': 'application/octet-stream' };
    const caller = new RawCaller(
      'POST',
      '/v2/models/infer/infer',
      Buffer.concat([json, first, second]),
      headers,
    );
    gateway.path.handle(caller);
    return caller;
  }

  const raw = fc
    .array(fc.tuple(fc.string({ unit: 'binary' }), fc.string(), fc.float({ noNaN: true })), {
      minLength: 1,
      maxLength: 5,
    })
    .map(
      (rows): Raw => ({
        texts: rows.map(([a, b]) => [a.toWellFormed(), b]),
        floats: rows.map(([, , f]) => f),
      }),
    );

  it('give each caller its own bytes, for any sizes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(raw, { minLength: 1, maxLength: 8 }), async (plan) => {
        const { gateway } = gatewayOf({ max: 12 });
        gateway.engines.set(A, rawEcho);
        const callers = plan.map((each) => send(gateway, each));
        await gateway.time.advance(200);
        for (const [at, caller] of callers.entries()) {
          const jsonBytes = Number(caller.answerHeader(HEADER));
          const { outputs } = JSON.parse(caller.bytes.toString('utf8', 0, jsonBytes)) as {
            outputs: { shape: number[]; parameters: { binary_data_size: number } }[];
          };
          const { texts, floats } = plan[at]!;
          expect(outputs.map(({ shape }) => shape)).toEqual([[texts.length, 2], [floats.length]]);
          const expected = Buffer.concat([
            ...texts.flat().map(element),
            Buffer.from(new Float32Array(floats).buffer),
          ]);
          expect(caller.bytes.subarray(jsonBytes)).toEqual(expected);
          const size = outputs.reduce((sum, { parameters }) => sum + parameters.binary_data_size, 0);
          expect(size).toBe(expected.length);
        }
        expect(gateway.taken).toEqual(NOTHING);
      }),
      { numRuns: 60 },
    );
  });

  it('are fewer upstream, and go by themselves where the bytes do not fit the shape', async () => {
    const { gateway } = gatewayOf();
    gateway.engines.set(A, never);
    for (let i = 0; i < 3; i++) send(gateway, { texts: [['a', 'b']], floats: [i] });
    send(gateway, { texts: [['a']], floats: [1] });
    send(gateway, { texts: [['a', 'b']], floats: [1] }, { parameters: { binary_data_output: true } });
    await gateway.time.advance(10);
    expect(gateway.served).toHaveLength(3);
  });
});
