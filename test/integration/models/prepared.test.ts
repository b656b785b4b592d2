import { expect, it } from 'vitest';
import { startArmature } from '../../upstream/armature.ts';
import { eventually } from '../../upstream/waiting.ts';
import { realModels } from './real-models.ts';

/** Texts that become tokens in the gateway's own threads, for a host of the real model without a tokenizer. */

const LOADED_WITHIN_MS = 90_000;
const TEXTS = [
  'A cat sat.',
  'The stock market fell on Tuesday.',
  'Wie spät ist es? 😀',
  Array.from({ length: 120 }, (_, i) => `word${i}`).join(' '),
  'x',
];

const models = await realModels();
if (typeof models === 'string' && process.env['CI']) throw new Error(models);

it('gives the vectors, and counts the tokens, that a host with the tokenizer does', async (context) => {
  if (typeof models === 'string') return context.skip(models);
  const { embedding } = models;
  const prepare = { tokensMax: 512, batchTokensMax: 512, delay: '20ms' };
  const local = (host: object) => ({ engine: 'local', model: 'minilm', host: { threads: 1, ...host } });
  await using armature = await startArmature({
    gateway: { workers: 2 },
    backends: { whole: local({}), bare: local({ prepared: true, batchTokensMax: 512 }) },
    routes: {
      inside: { targets: [{ backend: 'whole' }] },
      unprepared: { targets: [{ backend: 'bare' }] },
      ids: { targets: [{ backend: 'bare' }], prepare },
      hidden: { targets: [{ backend: 'bare' }], prepare: { ...prepare, to: 'tensors' } },
      pooled: {
        targets: [{ backend: 'bare' }],
        prepare: { ...prepare, to: 'tensors', tensors: { output: 'sentence_embedding' } },
      },
    },
    models: {
      minilm: {
        format: 'onnx',
        from: [`file:${embedding.model}`],
        tokenizer: { from: [`file:${embedding.tokenizer}`] },
      },
    },
  });
  const served = async () => {
    const { backends } = (await armature.admin('/api/v1/status')).json();
    return backends.every(({ host }: { host?: { state: string } }) => host?.state === 'serving');
  };
  await eventually('every model is served', served, LOADED_WITHIN_MS);

  type Embedded = { data: { index: number; embedding: number[] }[]; usage: { prompt_tokens: number } };
  const embed = async (model: string, input: unknown) => {
    const answer = await armature.ask({ path: '/v1/embeddings', body: { model, input } }, 60_000);
    expect([model, answer.status]).toEqual([model, 200]);
    return answer.json() as Embedded;
  };
  const expected = await embed('inside', TEXTS);
  for (const route of ['ids', 'hidden', 'pooled']) {
    const together = await Promise.all([embed(route, TEXTS), ...TEXTS.map((text) => embed(route, text))]);
    const [all, ...single] = together as [Embedded, ...Embedded[]];
    expect(all.usage).toEqual(expected.usage);
    expect(all.data.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
    for (const [at, { embedding: vector }] of expected.data.entries()) {
      for (const made of [all.data[at]!.embedding, single[at]!.data[0]!.embedding]) {
        expect(made).toHaveLength(384);
        expect(Math.max(...made.map((value, i) => Math.abs(value - vector[i]!)))).toBeLessThan(1e-4);
      }
    }
    expect(single.reduce((sum, { usage }) => sum + usage.prompt_tokens, 0)).toBe(
      expected.usage.prompt_tokens,
    );
  }

  const texts = await armature.ask({ path: '/v1/embeddings', body: { model: 'unprepared', input: 'a' } });
  expect([texts.status, texts.json().error.message]).toEqual([400, expect.stringContaining('token ids')]);
  const long = Array.from({ length: 600 }, () => 'a').join(' ');
  const tooLong = await armature.ask({ path: '/v1/embeddings', body: { model: 'ids', input: ['a', long] } });
  expect([tooLong.status, tooLong.json().error.param]).toEqual([400, 'input']);
  const inputs = [{ name: 'text', datatype: 'BYTES', shape: [2], data: TEXTS.slice(0, 2) }];
  const inferred = await armature.ask({
    path: '/v2/models/pooled/infer',
    body: { inputs, outputs: [{ name: 'sentence_embedding' }] },
  });
  expect(inferred.json().outputs).toMatchObject([{ name: 'sentence_embedding', shape: [2, 384] }]);
  expect(await armature.metric('armature_prepared_batches_total', {})).toBeGreaterThan(0);
  expect(await armature.metric('armature_preprocessing_waiting', {})).toBe(0);
}, 180_000);
