import { expect } from 'vitest';
import type { TokenizerPool } from '../../src/pipelines/contracts.ts';
import { InlineHand } from '../../src/pipelines/preprocessing/inline-hand.ts';
import { Pool } from '../../src/pipelines/preprocessing/pool.ts';
import { readInferCall, writeInferAnswer } from '../../src/protocols/oip/tensors.ts';
import { A, bodyOf } from './batching-world.ts';
import { type Engine, status, type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';
import { words } from './words-tokenizer.ts';

/** A gateway whose routes `embed` and `score` make tokens of texts, and engines that can tell them apart. */

export const B = 'http://10.0.0.2:8000';
export const idsOf = (text: string) => words('words').encode(text, true, undefined);

/** Answers with the ids that it was given, so that rows can be told apart; refuses those with the token of `bad`. */
const echo: Engine = (served) => {
  const { input } = bodyOf(served.request) as { input: number[][] };
  if (input.some((row) => row.includes(idsOf('bad')[1]!))) {
    status(400, { error: { message: 'bad token', type: 'invalid_request_error' } })(served);
    return;
  }
  const data = input.map((embedding, index) => ({ object: 'embedding', index, embedding })).reverse();
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  status(200, { object: 'list', data, model: 'm', usage }, {}, 10)(served);
};

/** A model over OIP: of each token a vector [id, 1], or of each text a row [sum of ids, tokens] as `scores`. */
const tensorModel: Engine = ({ request, sink, time }) => {
  const at = request.headers.indexOf('inference-header-content-length');
  const call = readInferCall(request.body as Buffer, request.headers[at + 1]);
  if (typeof call === 'string') throw new Error(call);
  const [ids, mask] = call.inputs;
  const [rows, length] = ids!.shape as [number, number];
  const read = (data: Buffer, index: number) => Number(data.readBigInt64LE(index * 8));
  const vectors = new Float32Array(rows * length * 2);
  const scores = new Float32Array(rows * 2);
  for (let place = 0; place < rows * length; place++) {
    vectors[place * 2] = read(ids!.data, place);
    vectors[place * 2 + 1] = 1;
    const row = Math.floor(place / length);
    scores[row * 2]! += read(ids!.data, place) * read(mask!.data, place);
    scores[row * 2 + 1]! += read(mask!.data, place);
  }
  const tensor = (name: string, shape: number[], data: Float32Array) => ({
    tensor: { name, datatype: 'FP32' as const, shape, data: Buffer.from(data.buffer) },
    binary: true,
  });
  const all = [tensor('hidden', [rows, length, 2], vectors), tensor('scores', [rows, 2], scores)];
  const wanted = call.outputs
    ? all.filter(({ tensor: { name } }) => call.outputs!.some((o) => o.name === name))
    : all;
  const answer = writeInferAnswer({ model: 'm', version: '1', id: undefined }, wanted);
  if (typeof answer === 'string') throw new Error(answer);
  time.set(10, () => {
    sink.onHead(200, {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(answer.headerLength),
    });
    sink.onData(answer.body);
    sink.onEnd();
  });
};

export function gatewayOf(
  prepare: object = {},
  more: { route?: object; pool?: object; msPerText?: number } = {},
) {
  let pool: TokenizerPool | undefined;
  const given = {
    tokenizer: { file: 'words' },
    delay: '5ms',
    tokensMax: 64,
    batchTokensMax: 128,
    ...prepare,
  };
  const gateway = new VirtualGateway(
    {
      backends: {
        b1: {
          engine: 'vllm',
          model: 'm',
          endpoints: [`${A}/v1`],
          limits: { concurrency: 4, adaptive: 'off' },
        },
        plain: { engine: 'vllm', model: 'p', endpoints: [`${B}/v1`] },
        t1: { engine: 'triton', model: 'm', endpoints: [B] },
      },
      routes: {
        embed: { targets: [{ backend: 'b1' }], prepare: given, ...more.route },
        score: { targets: [{ backend: 't1' }], prepare: { ...given, to: 'tensors' }, ...more.route },
      },
    },
    1,
    undefined,
    (time) => {
      pool = new Pool({
        clock: time,
        timers: time,
        hire: () => new InlineHand(time, words, more.msPerText ?? 0),
        settings: { threads: 1, queueMax: 100, ...more.pool },
      });
      return { pool, files: { ofModel: () => undefined, ofFile: (path) => ({ key: path, path }) } };
    },
  );
  gateway.engines.set(A, echo);
  gateway.engines.set(B, tensorModel);
  const embed = (input: unknown, rest: object = {}, headers = {}) =>
    gateway.send('POST', '/v1/embeddings', { model: 'embed', input, ...rest }, headers);
  const sent = () => gateway.served.map(({ request }) => (bodyOf(request) as { input: number[][] }).input);
  return { gateway, embed, sent, pool: pool! };
}

export function embeddingsIn(caller: VirtualCaller): unknown[] {
  const { data } = JSON.parse(caller.text) as { data: { index: number; embedding: unknown }[] };
  expect(data.map(({ index }) => index)).toEqual([...data.keys()]);
  return data.map(({ embedding }) => embedding);
}
