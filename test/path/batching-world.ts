import { type Engine, status, VirtualGateway } from './virtual-gateway.ts';

/** A gateway whose routes `embed` and `infer` join requests, and engines that can tell inputs apart. */

export const A = 'http://10.0.0.1:8000';
type Json = Record<string, unknown>;

export interface EmbeddingsAsked {
  input: string | (string | number[])[] | number[];
}

export const bodyOf = (request: { body: Buffer | string | undefined }) =>
  JSON.parse(request.body!.toString()) as Json;

/** What the engine makes of an input: something that tells it from any other. */
export const vectorOf = (input: unknown) => [JSON.stringify(input).length, JSON.stringify(input)];

/** Answers as OpenAI does, rows in any order; refuses a request in which `bad` stands. */
export const embeddings: Engine = (served) => {
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

export function gatewayOf(batch: object = {}, more: object = {}) {
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
