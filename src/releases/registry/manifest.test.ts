import { expect, test } from 'vitest';
import { FILE_PATH } from './manifest.ts';

test.each(['model.safetensors', 'a/b/.hidden', '模型 ñ.gguf', 'a..b/c.', '...'])(
  '%j is a path of a file',
  (path) => {
    expect(path).toMatch(FILE_PATH);
  },
);

test.each([
  '',
  '.',
  '..',
  '/a',
  '../a',
  'a/../b',
  'a/./b',
  'a\\b',
  'a\0b',
  'a\nb',
  '\x1b[2Ja',
  'a\x9bb',
  'a\n/../b',
])('%j is none', (path) => {
  expect(path).not.toMatch(FILE_PATH);
});
