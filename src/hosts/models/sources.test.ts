import { expect, test } from 'vitest';
import { cacheName, parseSource } from './sources.ts';

test('sources are read as they are written', () => {
  expect(parseSource('hf:a/b/onnx/c.onnx')).toEqual({
    kind: 'hf',
    repository: 'a/b',
    revision: 'main',
    file: 'onnx/c.onnx',
  });
  expect(parseSource('hf:a/b@v1/c')).toEqual({ kind: 'hf', repository: 'a/b', revision: 'v1', file: 'c' });
  expect(parseSource('pip:p==1.0/d/f')).toEqual({ kind: 'pip', package: 'p', version: '1.0', file: 'd/f' });
  expect(parseSource('npm:@s/p@2.0.0/f')).toEqual({
    kind: 'npm',
    package: '@s/p',
    version: '2.0.0',
    file: 'f',
  });
  expect(parseSource('file:/a b/c')).toEqual({ kind: 'file', path: '/a b/c' });
});

test('a name in the cache is safe, readable, and unlike that of any other source', () => {
  const name = cacheName('hf:a/b/we ird;name.gguf');
  expect(name).toMatch(/^[0-9a-f]{12}-we_ird_name\.gguf$/);
  expect(cacheName('hf:a/c/we ird;name.gguf')).not.toBe(name);
  expect(cacheName('hf:a/b/..')).toMatch(/^[0-9a-f]{12}-\.\.$/);
});
