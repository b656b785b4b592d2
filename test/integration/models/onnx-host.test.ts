import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HostServer } from '../../../src/hosts/contracts.ts';
import { serveOnnx } from '../../../src/hosts/onnx/index.ts';
import { gaugesOf, localOrder, realModels } from './real-models.ts';

let embedder: HostServer | undefined;
let classifier: HostServer | undefined;
let client: OpenAI;
let missing: string | undefined;

beforeAll(async () => {
  const models = await realModels();
  if (typeof models === 'string') {
    if (process.env['CI']) throw new Error(models);
    missing = models;
    return;
  }
  embedder = await serveOnnx({
    ...localOrder('embedding-model', {}),
    modelPath: models.embedding.model,
    tokenizerPath: models.embedding.tokenizer,
  });
  classifier = await serveOnnx({
    ...localOrder('file-type', {}),
    modelPath: models.classifier,
    tokenizerPath: undefined,
  });
  client = new OpenAI({ baseURL: embedder.address, apiKey: 'none', maxRetries: 0 });
});
beforeEach((context) => {
  if (missing !== undefined) context.skip(missing);
});
afterAll(async () => {
  await embedder?.close(0);
  await classifier?.close(0);
});

async function embed(input: string | string[]): Promise<number[][]> {
  const { data } = await client.embeddings.create({ model: 'm', input });
  return data.map(({ embedding }) => embedding);
}

const dot = (a: number[], b: number[]): number => a.reduce((sum, value, at) => sum + value * b[at]!, 0);

async function refusal(body: object) {
  const answer = await fetch(`${embedder!.address}/embeddings`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  return {
    status: answer.status,
    ...((await answer.json()) as { error: { message: string; code: string } }).error,
  };
}

describe('embeddings of a real model', () => {
  it('lie closer for texts that mean the same', async () => {
    const [cat, kitten, stocks] = await embed([
      'A cat sits on the mat.',
      'A kitten is sitting on a rug.',
      'Stock markets fell sharply on Monday.',
    ]);
    expect(dot(cat!, cat!)).toBeCloseTo(1, 4);
    expect(dot(cat!, kitten!)).toBeGreaterThan(0.5);
    expect(dot(cat!, stocks!)).toBeLessThan(0.2);
  });

  it('do not depend on what is computed beside them', async () => {
    const texts = Array.from({ length: 40 }, (_, at) => `Text ${at} ${'goes on '.repeat(at % 7)}`);
    const together = await embed(texts);
    const [alone] = await embed(texts[23]!);
    expect(dot(together[23]!, alone!)).toBeCloseTo(1, 4);
  });

  it('come as base64 too, with the same numbers', async () => {
    const answer = await fetch(`${embedder!.address}/embeddings`, {
      method: 'POST',
      body: JSON.stringify({ input: ['one', 'two'], encoding_format: 'base64' }),
    });
    const { data, usage } = (await answer.json()) as {
      data: { embedding: string }[];
      usage: { prompt_tokens: number };
    };
    const bytes = Buffer.from(data[1]!.embedding, 'base64');
    expect(bytes).toHaveLength(384 * 4);
    const [two] = await embed('two');
    const read = Array.from({ length: 384 }, (_, at) => bytes.readFloatLE(4 * at));
    expect(dot(read, two!)).toBeCloseTo(1, 4);
    expect(usage.prompt_tokens).toBe(6);
  });

  it('are made of tokens as of the text they stand for', async () => {
    const { data } = await client.embeddings.create({ model: 'm', input: [101, 7592, 102] });
    expect(dot(data[0]!.embedding, (await embed('hello'))[0]!)).toBeCloseTo(1, 4);
  });

  it('of many callers at once are each their own', async () => {
    const texts = Array.from({ length: 64 }, (_, at) => `The number is ${at}.`);
    const vectors = await Promise.all(texts.map(async (text) => (await embed(text))[0]!));
    const listed = await embed(texts);
    for (const [at, vector] of vectors.entries()) expect(dot(vector, listed[at]!)).toBeCloseTo(1, 4);
    expect(await gaugesOf(embedder!.address)).toEqual({ waiting: 0, running: 0 });
  });

  it.each([
    ['no input', {}],
    ['an empty text', { input: '' }],
    ['an empty text among others', { input: ['a', ''] }],
    ['an empty list', { input: [] }],
    ['a number', { input: 5 }],
    ['a token that the model has not', { input: [999_999] }],
    ['another length', { input: 'a', dimensions: 10 }],
    ['an unknown member', { input: 'a', inputs: 'b' }],
    ['another format', { input: 'a', encoding_format: 'hex' }],
  ])('are refused: %s', async (_what, body) => {
    expect(await refusal(body)).toMatchObject({ status: 400, type: 'invalid_request_error' });
  });

  it('are refused of a text that is too long, in the words of the API', async () => {
    const said = await refusal({ input: ['short', 'word '.repeat(600)] });
    expect(said).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'input' });
    expect(said.message).toContain('maximum context length is 512 tokens');
    const vast = await refusal({ input: 'word '.repeat(1_000_000) });
    expect(vast).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'input' });
  });
});

describe('a classifier over the Open Inference Protocol', () => {
  const oip = (path: string, init?: RequestInit) =>
    fetch(classifier!.address.replace(/\/v1$/, `/v2${path}`), init);
  const infer = (body: object | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
    oip('/models/file-type/infer', {
      method: 'POST',
      headers,
      body: Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
  /** What the model reads of a file: its first 1024 bytes and its last, without blanks, filled up with 256. */
  const features = (text: string): number[] => {
    const bytes = [...Buffer.from(text.trim())];
    const fill = Array.from({ length: 1024 - bytes.length }, () => 256);
    return [...bytes, ...fill, ...fill, ...bytes];
  };
  const python = features(
    'import os\n\ndef main():\n    print("hello")\n\nif __name__ == "__main__":\n    main()\n'.repeat(3),
  );
  const likeliest = (scores: readonly number[]) => scores.indexOf(Math.max(...scores));
  const input = (data: number[]) => ({ name: 'bytes', datatype: 'INT32', shape: [1, 2048], data });

  it('describes itself', async () => {
    expect((await oip('/health/live')).status).toBe(200);
    expect((await oip('/health/ready')).status).toBe(200);
    expect((await oip('/models/file-type/ready')).status).toBe(200);
    expect((await oip('/models/other')).status).toBe(404);
    expect((await oip('/models/file-type/versions/2')).status).toBe(404);
    expect(await (await oip('/models/file-type')).json()).toMatchObject({
      inputs: [{ name: 'bytes', datatype: 'INT32', shape: [-1, 2048] }],
      outputs: [{ name: 'target_label', datatype: 'FP32', shape: [-1, 214] }],
    });
  });

  it('tells what a file is, in JSON and in binary alike', async () => {
    const answer = (await (await infer({ id: '7', inputs: [input(python)] })).json()) as {
      id: string;
      outputs: { data: number[]; shape: number[] }[];
    };
    expect(answer.id).toBe('7');
    expect(answer.outputs[0]!.shape).toEqual([1, 214]);
    const scores = answer.outputs[0]!.data;
    expect(scores.reduce((sum, score) => sum + score, 0)).toBeCloseTo(1, 3);
    expect(Math.max(...scores)).toBeGreaterThan(0.8);

    const head = Buffer.from(
      JSON.stringify({
        inputs: [
          { name: 'bytes', datatype: 'INT32', shape: [1, 2048], parameters: { binary_data_size: 8192 } },
        ],
        outputs: [{ name: 'target_label', parameters: { binary_data: true } }],
      }),
    );
    const raw = Buffer.from(new Int32Array(python).buffer);
    const binary = await infer(Buffer.concat([head, raw]), {
      'inference-header-content-length': String(head.length),
    });
    const bytes = Buffer.from(await binary.arrayBuffer());
    const start = Number(binary.headers.get('inference-header-content-length'));
    const read = Array.from({ length: 214 }, (_, at) => bytes.readFloatLE(start + 4 * at));
    expect(likeliest(read)).toBe(likeliest(scores));
    expect(read[0]).toBeCloseTo(scores[0]!, 6);
  });

  it.each([
    ['no input', []],
    ['an unknown input', [{ ...input(python), name: 'words' }]],
    ['another datatype', [{ ...input(python), datatype: 'FP32' }]],
    ['another rank', [{ ...input(python), shape: [2048] }]],
    ['another size', [{ name: 'bytes', datatype: 'INT32', shape: [1, 3], data: [1, 2, 3] }]],
    ['fewer elements than the shape says', [{ ...input(python.slice(1)) }]],
    ['an input twice', [input(python), input(python)]],
  ])('refuses %s with its reason', async (_what, inputs) => {
    const answer = await infer({ inputs });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.any(String) });
  });

  it('refuses an output that it has not', async () => {
    expect((await infer({ inputs: [input(python)], outputs: [{ name: 'x' }] })).status).toBe(400);
  });
});
