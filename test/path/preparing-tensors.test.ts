import { describe, expect, it } from 'vitest';
import { readInferOutputs } from '../../src/protocols/oip/tensors.ts';
import { bodyOf } from './batching-world.ts';
import { B, embeddingsIn, gatewayOf, idsOf } from './preparing-world.ts';
import { NOTHING, status } from './virtual-gateway.ts';

describe('texts that become tensors', () => {
  it('give embeddings, pooled and of length 1, to callers of the embeddings API', async () => {
    const { gateway } = gatewayOf();
    const embed = (input: unknown, rest: object = {}) =>
      gateway.send('POST', '/v1/embeddings', { model: 'score', input, ...rest });
    const callers = [embed('one two'), embed(['three', 'four five six'], { encoding_format: 'base64' })];
    const wrong = [
      embed('a', { dimensions: 3 }),
      embed('a', { what: 1 }),
      embed('a', { encoding_format: 'x' }),
    ];
    await gateway.time.advance(50);
    const vectorOf = (text: string) => {
      const ids = idsOf(text);
      const mean = [ids.reduce((sum, id) => sum + id, 0) / ids.length, 1];
      return mean.map((value) => value / Math.hypot(...mean));
    };
    const [[first], others] = callers.map(embeddingsIn) as [[number[]], string[]];
    for (const [i, value] of vectorOf('one two').entries()) expect(first[i]).toBeCloseTo(value, 4);
    const decoded = others.map(
      (text) => new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer),
    );
    for (const [i, value] of vectorOf('four five six').entries())
      expect(decoded[1]![i]).toBeCloseTo(value, 4);
    expect(callers.map(({ text }) => JSON.parse(text).usage.prompt_tokens)).toEqual([4, 8]);
    expect(callers.map((caller) => caller.answerHeader('content-type'))).toEqual(
      Array(2).fill('application/json'),
    );
    expect(wrong.map((caller) => [caller.status, JSON.parse(caller.text).error.param])).toEqual([
      [400, 'dimensions'],
      [400, 'what'],
      [400, 'encoding_format'],
    ]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('give the outputs of the model to callers of the Open Inference Protocol', async () => {
    const { gateway } = gatewayOf();
    const infer = (texts: string[], rest: object = {}) =>
      gateway.send('POST', '/v2/models/score/infer', {
        inputs: [{ name: 'text', datatype: 'BYTES', shape: [texts.length, 1], data: texts }],
        ...rest,
      });
    const one = infer(['one two'], { id: 'mine', outputs: [{ name: 'scores' }] });
    const two = infer(['three', 'four five six'], { outputs: [{ name: 'scores' }] });
    const every = infer(['seven']);
    await gateway.time.advance(50);
    const scoresOf = (text: string) => [idsOf(text).reduce((sum, id) => sum + id, 0), idsOf(text).length];
    expect(JSON.parse(one.text)).toMatchObject({
      id: 'mine',
      outputs: [{ name: 'scores', datatype: 'FP32', shape: [1, 2], data: scoresOf('one two') }],
    });
    const outputs = readInferOutputs(Buffer.from(two.text), undefined);
    expect(outputs).toMatchObject([{ name: 'scores', shape: [2, 2] }]);
    expect(JSON.parse(two.text).outputs[0].data).toEqual([
      ...scoresOf('three'),
      ...scoresOf('four five six'),
    ]);
    expect(
      JSON.parse(every.text).outputs.map(({ name, shape }: { name: string; shape: number[] }) => [
        name,
        shape,
      ]),
    ).toEqual([
      ['hidden', [1, 2]],
      ['scores', [1, 2]],
    ]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('refuse a chat, and let tensors pass as they are', async () => {
    const { gateway } = gatewayOf();
    const chat = gateway.chat({ model: 'score' });
    const ids = { name: 'input_ids', datatype: 'INT64', shape: [1, 2], data: [5, 6] };
    const mask = { name: 'attention_mask', datatype: 'INT64', shape: [1, 2], data: [1, 1] };
    gateway.engines.set(B, status(200, { outputs: [] }));
    const tensors = gateway.send('POST', '/v2/models/score/infer', { inputs: [ids, mask] });
    await gateway.time.advance(50);
    expect([chat.status, tensors.status]).toEqual([400, 200]);
    expect(bodyOf(gateway.served[0]!.request)['inputs']).toEqual([ids, mask]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('that the engine refuses are told apart', async () => {
    const { gateway } = gatewayOf();
    gateway.engines.set(B, status(400, { error: 'no such input' }));
    const caller = gateway.send('POST', '/v1/embeddings', { model: 'score', input: 'a' });
    await gateway.time.advance(50);
    expect(caller.status).toBe(400);
    expect(JSON.parse(caller.text).error.message).toBe('no such input');
    expect(gateway.taken).toEqual(NOTHING);
  });
});
