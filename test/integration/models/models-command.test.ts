import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';

/** `armature models`, as it is shipped. */

const COMMAND = join(import.meta.dirname, '../../../bin/armature');
const FILE = Buffer.alloc(100_000, 'weights ');
const SHA256 = createHash('sha256').update(FILE).digest('hex');

let folder: string;
const hub = createServer((request, response) => {
  if (request.url === '/o/r/resolve/main/good.gguf') response.end(FILE);
  else response.writeHead(404).end();
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'armature-models-'));
  await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  hub.closeAllConnections();
  await new Promise((resolve) => hub.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const models = {
  first: {
    format: 'gguf',
    from: [
      'hf:o/r/none.gguf',
      { source: 'hf:o/r/good.gguf', sha256: SHA256, note: 'the small one, often wrong' },
    ],
  },
  second: { format: 'gguf', from: ['file:own.gguf'] },
};

function configure(content: object): void {
  writeFileSync(join(folder, 'armature.yaml'), stringify(content));
}

function run(...args: string[]): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  const env = {
    ...process.env,
    ARMATURE_MODELS: join(folder, 'cache'),
    HF_ENDPOINT: `http://127.0.0.1:${(hub.address() as AddressInfo).port}`,
    no_proxy: '127.0.0.1',
  };
  return new Promise((resolve) => {
    const child = execFile(COMMAND, ['models', ...args], { cwd: folder, env }, (_error, stdout, stderr) =>
      resolve({ exitCode: child.exitCode, stdout, stderr }),
    );
  });
}

const jsonLines = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

describe('models', () => {
  test('pull says which source was taken, why not those before it, and what is to be said of it', async () => {
    configure({ models: { first: models.first } });
    const pulled = await run('pull');
    expect(pulled).toMatchObject({ exitCode: 0, stderr: '' });
    const lines = pulled.stdout.trim().split('\n');
    expect(lines).toEqual([
      'first: fetching from hf:o/r/none.gguf',
      expect.stringMatching(/^first: cannot be had from hf:o\/r\/none\.gguf: .* answered 404: no such file$/),
      'first: trying hf:o/r/good.gguf',
      'first: fetched, 0.1 MB from hf:o/r/good.gguf',
      'first: the small one, often wrong',
    ]);
    expect((await run('pull')).stdout).toContain('first: here, 0.1 MB');
  });

  test('pull fails where no source has a model, after it has tried all models', async () => {
    configure({ models: { second: models.second, first: models.first } });
    const { exitCode, stdout, stderr } = await run('pull', '--json');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('no source could give second');
    const events = jsonLines(stdout);
    expect(events).toContainEqual({ type: 'missing', model: 'second', part: 'model' });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'done', model: 'first', sha256: SHA256, already: false }),
    );
  });

  test('ls shows what is here and what is not; it is what `models` does', async () => {
    configure({ models });
    writeFileSync(join(folder, 'own.gguf'), 'abc');
    const before = await run('--json');
    expect(before.exitCode).toBe(0);
    expect(JSON.parse(before.stdout).files).toMatchObject([
      { model: 'first', part: 'model', state: 'missing', bytes: null },
      { model: 'second', part: 'model', state: 'here', bytes: 3, path: join(folder, 'own.gguf') },
    ]);
    await run('pull', 'first');
    const { stdout } = await run('ls');
    expect(stdout).toMatch(/^first +model +here +0\.1 MB +hf:o\/r\/good\.gguf$/m);
    expect(stdout).toContain('first: the small one, often wrong');
  });

  test('rm removes what the cache holds, and never a file outside it', async () => {
    configure({ models });
    writeFileSync(join(folder, 'own.gguf'), 'abc');
    await run('pull');
    expect(await run('rm', 'first')).toMatchObject({ exitCode: 0, stdout: 'first: 0.1 MB removed.\n' });
    expect(await run('rm', 'second')).toMatchObject({ exitCode: 0 });
    expect(readdirSync(folder)).toContain('own.gguf');
    expect(readdirSync(join(folder, 'cache'))).toEqual(['locks']);
  });

  test('an unknown model, and a configuration with faults, are asked wrongly', async () => {
    configure({ models });
    expect(await run('pull', 'third')).toMatchObject({
      exitCode: 2,
      stderr: "armature: unknown model 'third'; the configuration has first, second\n",
    });
    configure({ models: { first: { format: 'gguf', from: ['hub:o/r/x'] } } });
    const faulty = await run('pull');
    expect(faulty.exitCode).toBe(2);
    expect(faulty.stderr).toContain('hf:OWNER/REPO/FILE');
  });
});
