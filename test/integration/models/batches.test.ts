import { describe, expect, it } from 'vitest';
import { startArmature } from '../../upstream/armature.ts';
import { eventually } from '../../upstream/waiting.ts';
import { realModels } from './real-models.ts';

/** Requests joined for real models: each caller's rows are those that it would have had alone. */

const LOADED_WITHIN_MS = 90_000;
const TEXTS = [
  'A cat sat.',
  'The stock market fell on Tuesday.',
  'x',
  'Wie spät ist es?',
  'A cat sat down on a mat.',
];

const models = await realModels();
if (typeof models === 'string' && process.env['CI']) throw new Error(models);

function cosine(a: number[], b: number[]): number {
  const dot = (x: number[], y: number[]) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

describe('joined requests', () => {
  it('give each caller of a real model its own rows', async (context) => {
    if (typeof models === 'string') return context.skip(models);
    const { embedding, classifier } = models;
    const batch = { delay: '300ms', max: 16 };
    await using armature = await startArmature({
      backends: {
        embeddings: { engine: 'local', model: 'embedding-model', host: { threads: 1 } },
        'file-type': { engine: 'local', model: 'file-type', host: { threads: 1 } },
      },
      routes: {
        alone: { targets: [{ backend: 'embeddings' }] },
        joined: { targets: [{ backend: 'embeddings' }], batch },
        kinds: { targets: [{ backend: 'file-type' }] },
        'kinds-joined': { targets: [{ backend: 'file-type' }], batch },
      },
      models: {
        'embedding-model': {
          format: 'onnx',
          from: [`file:${embedding.model}`],
          tokenizer: { from: [`file:${embedding.tokenizer}`] },
        },
        'file-type': { format: 'onnx', from: [`file:${classifier}`] },
      },
    });
    const served = async () => {
      const { backends } = (await armature.admin('/api/v1/status')).json();
      return backends.every(({ host }: { host?: { state: string } }) => host?.state === 'serving');
    };
    await eventually('every model is served', served, LOADED_WITHIN_MS);

    const embed = async (model: string, input: string) => {
      const answer = await armature.ask({ path: '/v1/embeddings', body: { model, input } }, 30_000);
      expect([answer.status, answer.json().data.length]).toEqual([200, 1]);
      return answer.json() as { data: { embedding: number[] }[]; usage: { prompt_tokens: number } };
    };
    const joined = await Promise.all(TEXTS.map((text) => embed('joined', text)));
    const alone = [];
    for (const text of TEXTS) alone.push(await embed('alone', text));
    for (const [at, { data }] of joined.entries()) {
      const vector = data[0]!.embedding;
      const likeness = alone.map((each) => cosine(vector, each.data[0]!.embedding));
      // Padding and quantization move the last digits of a vector, as they do in any batch of the engine's own.
      expect(likeness[at]).toBeGreaterThan(0.98);
      expect(likeness.indexOf(Math.max(...likeness))).toBe(at);
    }
    const tokens = (answers: { usage: { prompt_tokens: number } }[]) =>
      answers.reduce((sum, { usage }) => sum + usage.prompt_tokens, 0);
    expect(tokens(joined)).toBe(tokens(alone));

    const infer = async (model: string, fill: number, rows: number) => {
      const data = Array.from({ length: 2048 * rows }, (_, i) => (i % 3 === 0 ? 256 : fill));
      const body = { inputs: [{ name: 'bytes', datatype: 'INT32', shape: [rows, 2048], data }] };
      const answer = await armature.ask({ path: `/v2/models/${model}/infer`, body }, 30_000);
      expect(answer.status).toBe(200);
      return answer.json().outputs[0] as { shape: number[]; data: number[] };
    };
    const sizes = [1, 3, 2];
    const together = await Promise.all(sizes.map((rows, at) => infer('kinds-joined', 60 + at, rows)));
    for (const [at, { shape, data }] of together.entries()) {
      const own = await infer('kinds', 60 + at, sizes[at]!);
      expect(shape).toEqual([sizes[at], 214]);
      expect(cosine(data, own.data)).toBeGreaterThan(0.999);
    }
    expect(await armature.metric('armature_joined_total', { how: 'batch' })).toBe(
      TEXTS.length + sizes.length,
    );
    await armature.idle();
  });
});
