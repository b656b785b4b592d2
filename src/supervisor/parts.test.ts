import { expect, test } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import { parts } from './parts.ts';

const place = { data: '/d', file: '/f.yaml' };

function settings(overrides: object = {}) {
  return settingsSchema.parse({
    gateway: { workers: 2 },
    backends: {
      far: { engine: 'vllm', model: 'm', endpoints: ['http://10.0.0.5:8000/v1'] },
      near: { engine: 'local', model: 'small' },
    },
    models: { small: { format: 'gguf', from: ['file:/m.gguf'] } },
    ...overrides,
  });
}

test('control, each worker, and a host for each backend that runs here', () => {
  const graceMs = 35_000;
  expect(parts(settings(), place)).toEqual([
    { part: 'control', role: 'control', args: ['control', '--data', '/d', '-c', '/f.yaml'] },
    { part: 'gateway-0', role: 'gateway', args: ['gateway', '--data', '/d', '--worker', '0'], graceMs },
    { part: 'gateway-1', role: 'gateway', args: ['gateway', '--data', '/d', '--worker', '1'], graceMs },
    {
      part: 'host-near',
      role: 'host',
      args: ['host', '--data', '/d', '--backend', 'near', '--given', expect.any(String)],
      graceMs,
    },
  ]);
});

test('a host is given what it works on: the backend and its model, and nothing of the way to it', () => {
  const given = JSON.parse(parts(settings(), place).at(-1)!.args.at(-1)!);
  expect(given).toEqual({
    backend: { engine: 'local', model: 'small', host: { sequences: 4, contextTokensMax: 2048 } },
    model: { format: 'gguf', from: [{ source: 'file:/m.gguf' }] },
  });
});

test('a host is started anew when its model changes, not when only the way to it does', () => {
  const args = (overrides: object) => parts(settings(overrides), place).at(-1)?.args;
  const before = args({});
  expect(
    args({ backends: { near: { engine: 'local', model: 'small', limits: { concurrency: 3 } } } }),
  ).toEqual(before);
  expect(args({ models: { small: { format: 'gguf', from: ['file:/other.gguf'] } } })).not.toEqual(before);
});
