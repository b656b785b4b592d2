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
  const revision = expect.any(String);
  const gateway = { role: 'gateway', graceMs, revision, address: 'http://127.0.0.1:7070' };
  expect(parts(settings(), place)).toEqual([
    {
      part: 'control',
      role: 'control',
      args: ['control', '--data', '/d', '-c', '/f.yaml'],
      revision,
      address: 'http://127.0.0.1:7071',
    },
    { part: 'gateway-0', args: ['gateway', '--data', '/d', '--worker', '0'], ...gateway },
    { part: 'gateway-1', args: ['gateway', '--data', '/d', '--worker', '1'], ...gateway },
    {
      part: 'host-near',
      role: 'host',
      args: ['host', '--data', '/d', '--backend', 'near', '--given', expect.any(String)],
      graceMs,
    },
  ]);
});

test('workers and control are started anew when they are to listen elsewhere', () => {
  const revisions = (gateway: object, admin: object = {}) =>
    parts(settings({ gateway, admin }), place).map(({ role, revision }) => [role, revision]);
  const before = new Map(revisions({ listen: '127.0.0.1:1' }) as [string, string][]);
  const moved = new Map(revisions({ listen: '127.0.0.1:2', drain: '1s' }) as [string, string][]);
  expect(moved.get('gateway')).not.toBe(before.get('gateway'));
  expect(moved.get('control')).toBe(before.get('control'));
  const opened = new Map(
    revisions({ listen: '127.0.0.1:1' }, { listen: '127.0.0.1:3' }) as [string, string][],
  );
  expect(opened.get('gateway')).toBe(before.get('gateway'));
  expect(opened.get('control')).not.toBe(before.get('control'));
});

test.each([
  ['0.0.0.0:80', 'http://127.0.0.1:80'],
  ['[::]:80', 'http://[::1]:80'],
  ['[2001:db8::1]:80', 'http://[2001:db8::1]:80'],
  ['localhost:80', 'http://localhost:80'],
])('what listens at %s is reached at %s', (listen, address) => {
  const control = parts(settings({ admin: { listen } }), place)[0];
  expect(control?.address).toBe(address);
});

test('a host is given what it works on: the backend and its model, and nothing of the way to it', () => {
  const given = JSON.parse(parts(settings(), place).at(-1)!.args.at(-1)!);
  expect(given).toEqual({
    backend: {
      engine: 'local',
      model: 'small',
      host: { sequences: 4, contextTokensMax: 2048, batchTokensMax: 8192, prepared: false },
    },
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
