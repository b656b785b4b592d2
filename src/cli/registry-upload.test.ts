import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { filesIn } from './registry-upload.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-upload-'));
  mkdirSync(join(folder, 'model/sub'), { recursive: true });
  mkdirSync(join(folder, 'elsewhere'));
  for (const path of ['model/w', 'model/sub/t', 'elsewhere/blob']) writeFileSync(join(folder, path), path);
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a folder is all files in it, those that links lead to included', () => {
  symlinkSync('../elsewhere/blob', join(folder, 'model/linked'));
  expect(filesIn([join(folder, 'model')]).map(({ path }) => path)).toEqual(['linked', 'sub/t', 'w']);
});

test.each(['../elsewhere', '../nowhere'])('a link to %s is not left out in silence', (to) => {
  symlinkSync(to, join(folder, 'model/linked'));
  expect(() => filesIn([join(folder, 'model')])).toThrow('linked leads to no file');
});

test('what is no file is refused, and not read without end', () => {
  expect(() => filesIn(['/dev/zero'])).toThrow('/dev/zero is neither a file nor a folder');
});

test('two files of one path are refused', () => {
  mkdirSync(join(folder, 'other'));
  writeFileSync(join(folder, 'other/w'), 'w');
  expect(() => filesIn([join(folder, 'model'), join(folder, 'other')])).toThrow('would both be w');
});
