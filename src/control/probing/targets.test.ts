import { expect, test } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { probeTargets } from './targets.ts';

test('the path is the engine’s own or the one that is written, and the key goes along', () => {
  const endpoints = ['http://10.0.0.5:8000/v1'];
  const settings = settingsSchema.parse({
    backends: {
      cloud: {
        engine: 'openai',
        model: 'm',
        endpoints: ['https://api.example/base/v1'],
        auth: { bearer: 's' },
      },
      vllm: { engine: 'vllm', model: 'm', endpoints, auth: { header: { name: 'api-key', value: 'k' } } },
      odd: {
        engine: 'vllm',
        model: 'm',
        endpoints,
        probe: { path: '/alive?x=1' },
        auth: { basic: { user: 'u', password: 'p' } },
      },
      quiet: { engine: 'vllm', model: 'm', endpoints, probe: { off: true } },
      sim: { engine: 'sim' },
    },
  });
  expect(
    probeTargets(settings).map(({ backend, url, headers, pathGiven }) => [backend, url, headers, pathGiven]),
  ).toEqual([
    ['cloud', 'https://api.example/base/v1/models', { authorization: 'Bearer s' }, false],
    ['vllm', 'http://10.0.0.5:8000/health', { 'api-key': 'k' }, false],
    ['odd', 'http://10.0.0.5:8000/alive?x=1', { authorization: 'Basic dTpw' }, true],
  ]);
});
