import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type InferCall, readInferCall, type Tensor, toJson, valuesOf, writeInferAnswer } from './tensors.ts';

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

function read(value: unknown): InferCall {
  const call = readInferCall(json(value), undefined);
  if (typeof call === 'string') throw new Error(call);
  return call;
}

describe('an inference request', () => {
  it('is read from JSON, nested or flat', () => {
    for (const data of [
      [1, 2, 3, 4],
      [
        [1, 2],
        [3, 4],
      ],
    ]) {
      const call = read({ id: 'a', inputs: [{ name: 'x', datatype: 'INT16', shape: [2, 2], data }] });
      expect(call.id).toBe('a');
      expect(call.inputs[0]!.data).toEqual(Buffer.from([1, 0, 2, 0, 3, 0, 4, 0]));
    }
  });

  it('is read from JSON and raw tensors in declared order', () => {
    const head = json({
      inputs: [
        { name: 'x', datatype: 'BYTES', shape: [2], parameters: { binary_data_size: 11 } },
        { name: 'y', datatype: 'FP16', shape: [1], parameters: { binary_data_size: 2 } },
      ],
      outputs: [{ name: 'z', parameters: { binary_data: false } }, { name: 'w' }],
      parameters: { binary_data_output: true },
    });
    const raw = Buffer.from([2, 0, 0, 0, 104, 105, 1, 0, 0, 0, 33, 0, 60]);
    const call = readInferCall(Buffer.concat([head, raw]), String(head.length)) as InferCall;
    expect(call.inputs.map((input) => input.data.length)).toEqual([11, 2]);
    expect(call.outputs).toEqual([
      { name: 'z', binary: false },
      { name: 'w', binary: undefined },
    ]);
    expect(call.binaryOutputs).toBe(true);
  });

  it.each([
    ['no inputs', { inputs: [] }, /one tensor or more/],
    ['an unknown datatype', { inputs: [{ name: 'x', datatype: 'INT9', shape: [1], data: [1] }] }, /datatype/],
    ['a shape that lies', { inputs: [{ name: 'x', datatype: 'INT8', shape: [3], data: [1] }] }, /3 elements/],
    [
      'a value out of range',
      { inputs: [{ name: 'x', datatype: 'UINT8', shape: [1], data: [256] }] },
      /UINT8/,
    ],
    [
      'an inexact integer',
      { inputs: [{ name: 'x', datatype: 'INT64', shape: [1], data: [2 ** 60] }] },
      /binary/,
    ],
    ['FP16 in JSON', { inputs: [{ name: 'x', datatype: 'FP16', shape: [1], data: [1] }] }, /FP16/],
    ['a negative size', { inputs: [{ name: 'x', datatype: 'INT8', shape: [-1], data: [] }] }, /shape/],
    [
      'a size beyond the body',
      { inputs: [{ name: 'x', datatype: 'INT8', shape: [9], parameters: { binary_data_size: 9 } }] },
      /does not fit/,
    ],
  ])('is refused with its reason for %s', (_, request, message) => {
    expect(readInferCall(json(request), undefined)).toMatch(message);
  });

  it('is refused for bytes that belong to no tensor, and for a header length that lies', () => {
    const head = json({ inputs: [{ name: 'x', datatype: 'INT8', shape: [1], data: [1] }] });
    expect(readInferCall(Buffer.concat([head, Buffer.from([1])]), String(head.length))).toMatch(
      /1 bytes follow/,
    );
    for (const length of ['0', '-1', 'x', String(head.length + 1)]) {
      expect(readInferCall(head, length)).toMatch(/Inference-Header-Content-Length/);
    }
  });

  it('never throws, whatever the body', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 64 }),
        fc.json(),
        fc.option(fc.string()),
        (tail, text, length) => {
          const body = Buffer.concat([Buffer.from(text), tail]);
          const call = readInferCall(body, length ?? undefined);
          expect(typeof call === 'string' || call.inputs.length > 0).toBe(true);
        },
      ),
    );
  });
});

describe('an inference answer', () => {
  const values: [Tensor['datatype'], unknown[]][] = [
    ['BOOL', [true, false]],
    ['UINT8', [0, 255]],
    ['INT8', [-128, 127]],
    ['UINT16', [0, 65_535]],
    ['INT16', [-32_768, 32_767]],
    ['UINT32', [0, 4_294_967_295]],
    ['INT32', [-2_147_483_648, 2_147_483_647]],
    ['UINT64', [0, Number.MAX_SAFE_INTEGER]],
    ['INT64', [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]],
    ['FP32', [0.5, -1.25]],
    ['FP64', [0.1, 1e300]],
    ['BYTES', ['', 'grüße']],
  ];

  it.each(values)('gives %s back as it came', (datatype, data) => {
    const call = read({ inputs: [{ name: 'x', datatype, shape: [2], data }] });
    const tensor = call.inputs[0]!;
    const answer = writeInferAnswer({ model: 'm', version: '1', id: 'a' }, [{ tensor, binary: false }]);
    if (typeof answer === 'string') throw new Error(answer);
    expect(answer.headerLength).toBeUndefined();
    expect(JSON.parse(answer.body.toString())).toEqual({
      id: 'a',
      model_name: 'm',
      model_version: '1',
      outputs: [{ name: 'x', datatype, shape: [2], data }],
    });
  });

  it.each(values)('gives the first values of %s alone', (datatype, data) => {
    const { inputs } = read({ inputs: [{ name: 'x', datatype, shape: [2], data }] });
    expect(valuesOf(inputs[0]!, 1)).toEqual(data.slice(0, 1));
    expect(valuesOf(inputs[0]!)).toEqual(data);
  });

  it('has values in half precision too, though no JSON of them', () => {
    const tensor = (datatype: Tensor['datatype'], bits: number[]): Tensor => ({
      name: 'y',
      datatype,
      shape: [bits.length],
      data: Buffer.from(Uint16Array.from(bits).buffer),
    });
    const [half, brain] = [tensor('FP16', [0x3c00, 0xc100]), tensor('BF16', [0x3f80, 0xc020])];
    expect([valuesOf(half), valuesOf(brain)]).toEqual([
      [1, -2.5],
      [1, -2.5],
    ]);
    expect([toJson(half), toJson(brain)]).toEqual([undefined, undefined]);
  });

  it('puts raw tensors behind the JSON', () => {
    const tensor: Tensor = { name: 'y', datatype: 'BF16', shape: [1], data: Buffer.from([1, 2]) };
    const answer = writeInferAnswer({ model: 'm', version: '1', id: undefined }, [{ tensor, binary: true }]);
    if (typeof answer === 'string') throw new Error(answer);
    expect(answer.body.subarray(answer.headerLength)).toEqual(Buffer.from([1, 2]));
    const head = JSON.parse(answer.body.toString('utf8', 0, answer.headerLength));
    expect(head.outputs[0].parameters).toEqual({ binary_data_size: 2 });
    expect(
      writeInferAnswer({ model: 'm', version: '1', id: undefined }, [{ tensor, binary: false }]),
    ).toMatch(/BF16/);
  });
});
