import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { stressLoad } from './load.ts';
import { judgeStress } from './verdict.ts';

type Measured = Parameters<typeof judgeStress>[1];

const STRESS = settingsSchema.shape.routes.unwrap().valueType.shape.release.unwrap().shape.stress.unwrap();
const stressOf = (more: object) => STRESS.parse({ concurrency: 8, p99Max: '1s', ...more });

const WELL: Measured = {
  intended: 1000,
  ok: 1000,
  failed: 0,
  dropped: 0,
  unfinished: 0,
  failures: {},
  times: { p50: 100, p95: 300, p99: 900, max: 950 },
  tokensOut: 64_000,
  measuredMs: 30_000,
  inflightMost: 8,
};

describe('a load test is judged', () => {
  it.each([
    ['stress-passed', {}, {}, undefined],
    ['stress-slow', { times: { p50: 1, p95: 1, p99: 1001, max: 2000 } }, {}, undefined],
    ['stress-errors', { ok: 999, failed: 1 }, {}, undefined],
    ['stress-passed', { ok: 999, failed: 1 }, { errorsMax: 0.001 }, undefined],
    ['stress-errors', { ok: 999, dropped: 1 }, {}, undefined],
    ['stress-errors', { ok: 999, unfinished: 1 }, {}, undefined],
    ['stress-too-few', { intended: 19, ok: 19 }, {}, undefined],
    ['stress-too-few', { times: { p50: 1, p95: 1, p99: Number.NaN, max: 1 } }, {}, undefined],
    ['stress-passed', {}, { memoryMax: '1GiB' }, 2 ** 30],
    ['stress-memory', {}, { memoryMax: '1GiB' }, 2 ** 30 + 1],
    ['stress-memory-unknown', {}, { memoryMax: '1GiB' }, undefined],
  ] as const)('%s for %j under %j', (code, measured, more, memory) => {
    const verdict = judgeStress(stressOf(more), { ...WELL, ...measured }, memory);
    expect(verdict).toMatchObject({ passed: code === 'stress-passed', reason: { code } });
  });

  it('as not passed where nothing was measured, whatever may fail (traps 1, 16)', () => {
    const { times: _times, ...nothing } = { ...WELL, intended: 0, ok: 0 };
    expect(judgeStress(stressOf({}), nothing, undefined).passed).toBe(false);
    expect(judgeStress(stressOf({ errorsMax: 1 }), nothing, undefined)).toMatchObject({
      passed: false,
      reason: { code: 'stress-too-few' },
    });
  });
});

describe('the load', () => {
  const address = 'http://10.0.0.2:8000/v1';

  function loadOf(stress: object, next: object = {}, endpoints = [address]) {
    const settings = settingsSchema.parse({
      backends: {
        now: { engine: 'vllm', model: 'm', endpoints: ['http://10.0.0.1:8000/v1'] },
        next: 'engine' in next ? next : { engine: 'vllm', model: 'm', endpoints, ...next },
      },
      routes: { chat: { targets: [{ backend: 'now' }, { backend: 'next', weight: 0 }] } },
      models: { minilm: { format: 'onnx', from: ['file:x.onnx'], tokenizer: { from: ['file:t.json'] } } },
    });
    const at = 'endpoints' in settings.backends['next']! ? settings.backends['next'].endpoints : [address];
    return stressLoad(stressOf(stress), 'next', { settings, endpoints: at });
  }

  it('is spread over endpoints, and bounded by what each may have at once', () => {
    const two = [address, 'http://10.0.0.3:8000/v1'];
    expect(loadOf({ concurrency: 7 }, {}, two)).toMatchObject({ inflightMax: 4, kind: 'chat', model: 'm' });
    expect(loadOf({ concurrency: undefined, rate: '60/min', tokensInFlightMax: 1000 })).toMatchObject({
      perSecond: 1,
      inflightMax: 5, // of 128 + 64 tokens each
    });
    expect(loadOf({ concurrency: undefined, rate: '5/s' }, { limits: { concurrency: 3 } })).toMatchObject({
      inflightMax: 3,
    });
    expect(loadOf({ tokensInFlightMax: 1000 })).toMatchObject({
      code: 'stress-over-caps',
      figures: { asked: 8, cap: 5 },
    });
  });

  it.each([
    [{ engine: 'triton', model: 'm', endpoints: ['http://10.0.0.2:8000'] }, {}, 'tensors', '/v2'],
    [{ engine: 'local', model: 'minilm' }, {}, 'embeddings', '/v1'],
    [{ engine: 'sim' }, { kind: 'tensors' }, 'tensors', '/v2'],
    [{}, { kind: 'embeddings' }, 'embeddings', '/v1'],
  ])('of %j is of the kind that it answers', (next, stress, kind, base) => {
    expect(loadOf(stress, next)).toMatchObject({
      kind,
      endpoints: [{ origin: 'http://10.0.0.2:8000', base }],
    });
  });
});
