import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepLastGood, lastGoodIo } from './last-good.ts';
import { loadConfig } from './load.ts';

let data: string;
let main: string;

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'last-good-'));
  main = join(data, 'armature.yaml');
  mkdirSync(join(data, 'run'));
  mkdirSync(join(data, 'conf.d'));
  writeFileSync(
    main,
    'include: [conf.d/*.yaml]\nbackends: { far: { engine: openai, model: m, endpoints: ["http://far/v1"], auth: { bearer: "${file:key}" } } }\n',
  );
  writeFileSync(join(data, 'conf.d/routes.yaml'), 'routes: { chat: { targets: [{ backend: far }] } }\n');
  writeFileSync(join(data, 'key'), 'sesame\n');
});
afterEach(() => rmSync(data, { recursive: true }));

function keep() {
  const loaded = loadConfig(main);
  if (!loaded.ok) throw new Error('the test has a bad file');
  keepLastGood(data, main, loaded.config.files);
  return loaded.config;
}

test('what was kept loads as it did, with all its places, while the files are faulty or gone', () => {
  const { settings, origins } = keep();
  writeFileSync(main, 'routes: [broken');
  rmSync(join(data, 'conf.d'), { recursive: true });
  expect(loadConfig(main).ok).toBe(false);
  expect(loadConfig(main, lastGoodIo(data, main))).toMatchObject({ ok: true, config: { settings, origins } });
});

test('it holds no secret that the files only refer to, and is read by its owner alone', () => {
  keep();
  const path = join(data, 'run/last-good.json');
  expect(readFileSync(path, 'utf8')).not.toContain('sesame');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('nothing is known of another configuration file', () => {
  expect(lastGoodIo(data, main)).toBeUndefined();
  keep();
  expect(lastGoodIo(data, join(data, 'other.yaml'))).toBeUndefined();
});
