import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { manifestIn } from './registry-manifest.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-manifest-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What is said of a manifest, without the name of its file. */
function said(text: string | Buffer): string {
  const file = join(folder, 'm.yaml');
  writeFileSync(file, text);
  try {
    return JSON.stringify(manifestIn(file));
  } catch (error) {
    return (error as Error).message.replaceAll(file, 'm.yaml');
  }
}

const NO_MAP = 'm.yaml:1:1: expected a map of what the version is, "training" at least, found';

test.each([
  ['nothing', '', `${NO_MAP} nothing`],
  ['a comment alone', '# later\n', `${NO_MAP} nothing`],
  ['null', 'null', `${NO_MAP} nothing`],
  ['a list', '- training\n', `${NO_MAP} a list`],
  ['a single value', 'fraud', `${NO_MAP} a single value`],
  ['no UTF-8', Buffer.from([0x61, 0x3a, 0xff]), 'm.yaml is not text in UTF-8'],
  ['10 MB', `description: ${'x'.repeat(10e6)}`, 'm.yaml is larger than 4194304 bytes'],
  ['JSON that breaks off', '{"training": {"unknown": "x"', 'm.yaml:1:29: a map that begins with { is not'],
  ['two documents', 'training: { unknown: x }\n---\na: b\n', 'm.yaml:2:1: a second document begins here'],
  [
    'a key twice',
    'training: { unknown: x }\ndriver: a\ndriver: b\n',
    'm.yaml:3:1: the key "driver" is written',
  ],
  [
    'an unknown key',
    'training: { unknown: x }\ndesciption: y\n',
    'm.yaml:2:1: desciption: unknown key "desciption"',
  ],
  ['a wrong type', 'training: { unknown: x }\nprecision: 16\n', 'm.yaml:2:12: precision: expected a text'],
  ['no training', 'driver: "580"\n', 'training: "training" is missing: expected all of commit, image,'],
  ['training of nothing', 'training:\n', 'm.yaml:1:1: training: expected all of commit, image, lockFile,'],
  [
    'half of the training',
    'training: { commit: a }\n',
    'm.yaml:1:11: training: expected all of commit, image,',
  ],
  [
    'training that is known and unknown',
    'training: { unknown: x, commit: a }',
    'or { unknown: WHY } alone, found a map',
  ],
  [
    'a bad value in a list',
    'training: { unknown: x }\nfiles: [{ path: ../w, sha256: "1" }]\n',
    'm.yaml:2:31: files[0].sha256: expected a SHA-256',
  ],
])('a manifest of %s is told with its line and what was expected', (_what, text, told) => {
  expect(said(text)).toContain(told);
});

test('every fault is told at once, with what was probably meant', () => {
  const told = said('training: { unknown: x }\nformat: gguff\nlibraries: { torch: 2 }\nscore: logits\n');
  for (const part of [
    'm.yaml:2:9: format: expected safetensors, gguf',
    'did you mean "gguf"?',
    'm.yaml:3:21: libraries.torch: expected a text, found 2',
    'm.yaml:4:8: score: expected a map, found "logits"',
    '3 faults in the manifest',
  ])
    expect(told).toContain(part);
});

test('a file that is not there, or a folder, is told', () => {
  expect(() => manifestIn(join(folder, 'no.yaml'))).toThrow('does not exist');
  expect(() => manifestIn(folder)).toThrow('is a folder');
});

test('what is in order comes as it was written', () => {
  const text =
    '{"training": {"unknown": "x"}, "engine": {"name": "vllm", "version": "1", "settings": {"a": [1]}}}';
  expect(JSON.parse(said(text))).toEqual(JSON.parse(text));
});
