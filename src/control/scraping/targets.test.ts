import { expect, test } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { pageTargets } from './targets.ts';

const A = 'http://10.0.0.5:8000/v1';
const B = 'http://10.0.0.6:8000/v1';

function targetsOf(backends: Record<string, object>, hosts: Record<string, string[]> = {}) {
  const settings = settingsSchema.parse({ backends });
  const endpoints = Object.fromEntries(
    Object.entries(settings.backends).map(([name, of]) => [name, 'endpoints' in of ? of.endpoints : []]),
  );
  return pageTargets(settings, { ...endpoints, ...hosts }).map(({ url, headers, written, subjects }) => [
    url,
    written,
    headers,
    ...subjects.map(({ key, sharedBy }) => (sharedBy === 1 ? key : `${key} of ${sharedBy}`)),
  ]);
}

const backend = (more: object) => ({ engine: 'openai', model: 'm', endpoints: [A, B], ...more });

test('a list is read in the order of the endpoints', () => {
  const gauges = ['http://10.0.0.5:9000/metrics', 'http://10.0.0.6:9000/metrics'];
  expect(targetsOf({ b: backend({ gauges }) })).toEqual([
    [gauges[0], true, {}, `b|${A}`],
    [gauges[1], true, {}, `b|${B}`],
  ]);
});

test('one page says where each endpoint has its own, or is of all together', () => {
  expect(targetsOf({ b: backend({ gauges: 'http://10.0.0.5:8000/own/metrics' }) })).toEqual([
    ['http://10.0.0.5:8000/own/metrics', true, {}, `b|${A}`],
    ['http://10.0.0.6:8000/own/metrics', false, {}, `b|${B}`],
  ]);
  expect(targetsOf({ b: backend({ gauges: 'http://watch:9090/m' }) })).toEqual([
    ['http://watch:9090/m', true, {}, `b|${A} of 2`, `b|${B} of 2`],
  ]);
});

test('a named engine and a host of ours are read where they usually are, any other not at all', () => {
  const endpoints = [A];
  const backends = {
    any: { engine: 'openai', model: 'm', endpoints },
    trt: { engine: 'tensorrt-llm', model: 'm', endpoints },
    tgi: { engine: 'tgi', model: 'm', endpoints },
    ollama: { engine: 'ollama', model: 'm', endpoints },
    triton: { engine: 'triton', model: 'm', endpoints: ['http://10.0.0.9:8000'] },
    sim: { engine: 'sim' },
  };
  expect(targetsOf(backends, { sim: ['http://127.0.0.1:41/v1'] })).toEqual([
    ['http://10.0.0.5:8000/prometheus/metrics', false, {}, `trt|${A}`],
    ['http://10.0.0.5:8000/metrics', false, {}, `tgi|${A}`],
    ['http://127.0.0.1:41/metrics', false, {}, 'sim|http://127.0.0.1:41/v1'],
  ]);
});

test('a page that tells of several models is read once', () => {
  const of = { engine: 'vllm', endpoints: [A] };
  expect(targetsOf({ x: { ...of, model: 'x' }, y: { ...of, model: 'y' } })).toEqual([
    ['http://10.0.0.5:8000/metrics', false, {}, `x|${A}`, `y|${A}`],
  ]);
});

test('the key goes along to the endpoint that it is for, and nowhere else', () => {
  const auth = { bearer: 'secret' };
  const gauges = [A.replace('v1', 'metrics'), 'http://watch:9090/m'];
  expect(targetsOf({ b: backend({ auth, gauges }) })).toEqual([
    [gauges[0], true, { authorization: 'Bearer secret' }, `b|${A}`],
    [gauges[1], true, {}, `b|${B}`],
  ]);
});
