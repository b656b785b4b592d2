import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { gguf, onnx, pickle, safetensors } from '../registry/model-files.ts';
import { ControlProcess } from './control-process.ts';
import { config, Files, run, sha256 } from './registry-command.ts';

/** The registry by its command, against a control process, with content in a directory and in an S3-compatible server. */

let files: Files;
beforeEach(() => {
  files = new Files();
});
afterEach(() => rmSync(files.folder, { recursive: true }));

let s3: S3rver;
let s3Port = 0;
let bucketFolder: string;
beforeAll(async () => {
  bucketFolder = mkdtempSync(join(tmpdir(), 'armature-s3-'));
  s3 = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory: bucketFolder,
    configureBuckets: [{ name: 'models' }],
  });
  s3Port = (await s3.run()).port;
});
afterAll(async () => {
  await s3.close();
  rmSync(bucketFolder, { recursive: true });
});

const stores = {
  directory: () => ({}),
  s3: () => ({
    store: 's3://models/live',
    archive: 's3://models/archive',
    s3: { endpoint: `http://127.0.0.1:${s3Port}`, accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  }),
};

describe.each(['directory', 's3'] as const)('content in a store of kind %s', (kind) => {
  let control: ControlProcess;
  beforeEach(async () => {
    control = await ControlProcess.start(config(stores[kind]()));
  });
  afterEach(() => control[Symbol.asyncDispose]());

  /** Every file of live content, whichever store has it. */
  const content = (part: 'live' | 'archive') => {
    const folder =
      kind === 's3'
        ? join(bucketFolder, 'models', part)
        : join(control.data, part === 'live' ? 'artifacts' : 'archive');
    if (!existsSync(folder)) return [];
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const found = entries.filter((entry) => entry.isFile() && /^[0-9a-f]{64}/.test(entry.name));
    return found.map((entry) => join(entry.parentPath, entry.name));
  };

  test('a version is added, shown, verified, archived, restored and removed', async () => {
    // Larger than what is sent at once, and than what S3 gets in one part.
    const bytes = 20 * 2 ** 20;
    const weights = safetensors(
      { w: { dtype: 'F32', shape: [bytes / 4], data_offsets: [0, bytes] } },
      Buffer.alloc(bytes, 7),
    );
    const add = files.version('fraud', { 'model.safetensors': weights, 'card.md': '# A card\n' });
    const added = await run(control, ...add, '--json');
    expect(added.last).toMatchObject({ type: 'done', version: 'fraud@1', state: 'live' });
    expect(added.last.manifest).toMatchObject({ format: 'safetensors', precision: 'fp32' });
    const shown = await run(control, 'registry', 'show', 'fraud@1', '--json');
    expect(shown.last.manifest.files).toContainEqual({
      path: 'model.safetensors',
      sha256: sha256(weights),
      bytes: weights.length,
      format: 'safetensors',
      role: 'weights',
    });
    expect(shown.last.missing).toContain('engine');
    expect((await run(control, 'registry', 'verify', 'fraud@1')).text).toContain('as they were');
    expect(content('live').length).toBeGreaterThanOrEqual(2);

    // Sent again it is not sent: only the version is new.
    expect((await run(control, ...add, '--json')).last.version).toBe('fraud@2');

    // What a live version shares stays; what only archived ones have moves.
    expect((await run(control, 'registry', 'archive', 'fraud@1', '--json')).last).toMatchObject({ moved: 0 });
    expect((await run(control, 'registry', 'archive', 'fraud@2', '--json')).last).toMatchObject({ moved: 2 });
    expect(content('live').filter((path) => path.includes(sha256(weights)))).toEqual([]);
    expect((await run(control, 'registry', 'verify', 'fraud@2')).code).toBe(0);
    expect((await run(control, ...add, '--json')).last.version).toBe('fraud@3');
    expect((await run(control, 'registry', 'restore', 'fraud@2', '--json')).last.state).toBe('live');
    expect((await run(control, 'registry', 'restore', 'fraud@1', '--json')).last.state).toBe('live');
    expect((await run(control, 'registry', 'verify', 'fraud@2')).code).toBe(0);

    for (const number of [1, 2, 3])
      expect((await run(control, 'registry', 'rm', `fraud@${number}`)).code).toBe(0);
    expect(content('live').filter((path) => path.includes(sha256(weights)))).toEqual([]);
    const told = await control.events('version-removed');
    expect(told.map(({ subject }) => subject)).toEqual([
      'version:fraud@1',
      'version:fraud@2',
      'version:fraud@3',
    ]);
  });

  test('damage and loss are told file by file', async () => {
    const weights = gguf({ 'general.file_type': 7, 'general.name': kind });
    const added = await run(control, ...files.version('m', { 'm.gguf': weights, 'note.txt': `of ${kind}` }));
    expect(added.text).toContain('m@1 is sealed: 2 files');
    const place = content('live').find((path) => path.includes(sha256(weights)))!;
    // The S3 server keeps objects in files of their own format beside their names.
    const file = kind === 's3' ? place.replace(/\._S3rver_.*$/, '._S3rver_object') : place;
    const bytes = readFileSync(file);
    bytes[bytes.length - 1] = 255;
    writeFileSync(file, bytes);
    const verified = await run(control, 'registry', 'verify', 'm@1', '--json');
    expect(verified.code).toBe(1);
    expect(verified.last).toMatchObject({ ok: false, damaged: [{ path: 'm.gguf', trouble: 'damaged' }] });
    expect((await control.events('version-damaged')).at(-1)?.data).toMatchObject({ version: 'm@1' });
  });
});

describe('what is not taken', () => {
  let control: ControlProcess;
  beforeAll(async () => {
    control = await ControlProcess.start(config({}));
  });
  afterAll(() => control[Symbol.asyncDispose]());
  const refusal = async (...argv: string[]) => {
    const { code, notes } = await run(control, ...argv);
    return { code, notes };
  };

  test('pickles, whatever they are called, unless they are allowed aloud', async () => {
    const add = files.version('p', { 'model.safetensors': pickle(['os', 'system']) });
    expect(await refusal(...add)).toMatchObject({ code: 1, notes: expect.stringContaining('is a pickle') });
    expect((await refusal(...add)).notes).toContain('os.system');
    const allowed = await run(control, ...add, '--allow-pickle', '--json');
    expect(allowed.last.manifest.pickles).toEqual({ allowedBy: 'operator', files: ['model.safetensors'] });
    expect((await control.events('version-added')).at(-1)?.data).toMatchObject({
      pickles: ['model.safetensors'],
    });
  });

  test('a manifest that the files contradict, every fault at once', async () => {
    const template = '0'.repeat(64);
    const manifest = {
      format: 'gguf',
      precision: 'bf16',
      score: { output: 'logits' },
      template,
      files: [{ path: 'model.onnx', sha256: 'f'.repeat(64) }],
      lineage: { parent: 'q@7' },
      decisions: ['dec_0'],
    };
    const add = files.version('q', { 'model.onnx': onnx(), 'chat_template.jinja': 'x' }, manifest);
    const { code, notes } = await refusal(...add);
    expect(code).toBe(1);
    for (const part of [
      'says format gguf, and the weights are onnx',
      'says precision bf16, and the weights are fp32',
      "'logits' is the score, and the outputs are scores",
      `says that the template is ${template}`,
      'says that model.onnx is ffff',
      'its parent q@7 is not there',
      'there is no decision dec_0',
    ])
      expect(notes).toContain(part);
    expect((await run(control, 'registry', 'ls', '--json')).text).not.toContain('"q"');
  });

  test('a request whose manifest is none is told what was expected', async () => {
    const path = '/api/v1/registry/q/versions';
    const asked = { files: [{ path: 'w', sha256: '0'.repeat(64) }] };
    const answered = async (manifest: unknown) =>
      (await control.change('POST', path, { ...asked, manifest })).content.toString();
    for (const manifest of [null, [], 'text'])
      expect(await answered(manifest)).toContain('expected a map of what the version is');
    const { status, content } = await control.change('POST', path, { ...asked, manifest: { driver: 5 } });
    expect(status).toBe(400);
    for (const part of [
      'driver: expected a text, found 5',
      '\\"training\\" is missing: expected all of commit',
    ])
      expect(content.toString()).toContain(part);
  });

  test('weights that lie elsewhere and are not there, a training that cannot be rebuilt, what nobody knows', async () => {
    const part = files.version('r', { 'model.onnx': onnx({ external: 'model.bin' }) });
    expect((await refusal(...part)).notes).toContain(
      'has weights in model.bin, which is not among the files',
    );
    const whole = files.version('r', {
      'model.onnx': onnx({ external: 'model.bin' }),
      'model.bin': Buffer.alloc(24, 200),
    });
    expect((await refusal(...whole)).code).toBe(0);
    const stray = files.version('r', { 'model.onnx': onnx(), 'other.bin': Buffer.alloc(24, 200) });
    expect((await refusal(...stray)).notes).toContain('other.bin is of no known format');
    const half = files.version('r', { 'model.onnx': onnx() }, { training: { commit: 'abc', seed: 1 } });
    expect((await refusal(...half)).notes).toContain('all of commit, image, lockFile, seed');
    const broken = files.version('r', { 'm.safetensors': safetensors(undefined, Buffer.alloc(10)) });
    expect((await refusal(...broken)).notes).toContain('is broken: it ends too early');
  });

  test('content is what it is called, comes in pieces, and goes on where it ended', async () => {
    const bytes = Buffer.from('{"a": 1}');
    const path = `/api/v1/artifacts/${sha256(bytes)}`;
    const headers: [string, string][] = [
      ['authorization', `Bearer ${control.token}`],
      ['content-type', 'application/octet-stream'],
    ];
    const put = (at: number, body: Buffer) =>
      control.admin(`${path}?at=${at}`, { method: 'PUT', headers, body });
    expect((await put(0, bytes.subarray(0, 3))).status).toBe(200);
    expect((await put(5, bytes.subarray(5))).status).toBe(409);
    await control.end('SIGKILL');
    await control.up();
    expect(await control.json(path)).toEqual({ sha256: sha256(bytes), bytes: 3, kept: false });
    headers[0]![1] = `Bearer ${control.token}`;
    expect((await put(3, Buffer.from('#########'))).status).toBe(200);
    const wrong = await control.change('POST', path);
    expect(wrong.content.toString()).toContain('it was thrown away');
    expect((await put(0, bytes)).status).toBe(200);
    const done = (await control.change('POST', path)).content.toString().trim().split('\n').at(-1)!;
    expect(JSON.parse(done)).toMatchObject({ type: 'done', kept: true, inspection: { format: 'json' } });
  });
});

test('aliases move by compare-and-set; trap 35: what they led to before is not served, and its age is told', async () => {
  await using control = await ControlProcess.start(config({}));
  for (const name of ['a', 'b'])
    await run(control, ...files.version('m', { 'm.gguf': gguf({ 'general.name': name }) }));
  const alias = (...rest: string[]) =>
    run(control, 'registry', 'alias', 'm', 'production', ...rest, '--json');
  expect(await alias('1', '--expect', 'none')).toMatchObject({ notes: '', code: 0 });
  expect((await alias('1')).last).toMatchObject({ version: 'm@1', revision: 1 });
  const refused = await alias('2', '--expect', '2');
  expect(refused).toMatchObject({ code: 1, notes: expect.stringContaining('leads to version 1') });
  // Many at once: one wins, and the others are told.
  const race = await Promise.all(Array.from({ length: 5 }, () => alias('2', '--expect', '1')));
  expect(race.map(({ code }) => code).filter((code) => code === 0)).toHaveLength(1);
  const shown = await alias();
  expect(shown.last).toMatchObject({ version: 'm@2', number: 2, revision: 2, actor: 'operator' });
  expect(shown.last.ageMs).toBeLessThan(60_000);
  expect(shown.last.history.map(({ number }: { number: number }) => number)).toEqual([2, 1]);
  expect((await run(control, 'registry', 'show', 'm@production', '--json')).last.version).toBe('m@2');
  // Trap 34: a label cannot be taken for a number.
  expect((await run(control, 'registry', 'alias', 'm', '3', '1')).notes).toContain('no alias');
  const diff = await run(control, 'registry', 'diff', 'm@1', 'm@production');
  expect(diff.text).toContain('files.m.gguf.sha256');
  expect((await alias('--remove')).code).toBe(0);
  expect((await run(control, 'registry', 'show', 'm@production')).code).toBe(1);
});

test('what a backend serves is not removed, and a backend may not name what is not there', async () => {
  await using control = await ControlProcess.start(config({}));
  for (const name of ['a', 'b'])
    await run(control, ...files.version('m', { 'm.gguf': gguf({ 'general.name': name }) }));
  await run(control, 'registry', 'alias', 'm', 'production', '2');
  const put = (version: string) =>
    control.change('PUT', '/api/v1/config', { backends: { far: { version } } });
  const unknown = await put('m@9');
  expect([unknown.status, unknown.content.toString()]).toEqual([
    400,
    expect.stringContaining('there is no m@9; the newest is m@2'),
  ]);
  expect((await put('m@production')).status).toBe(200);
  expect((await control.json<{ data: object[] }>('/api/v1/backends')).data).toMatchObject([
    { name: 'far', version: { named: 'm@production', version: 'm@2', alias: { revision: 1 } } },
  ]);
  const shown = (await run(control, 'registry', 'show', 'm@2', '--json')).last;
  expect(shown.users).toEqual(['alias m@production', 'backend far']);
  expect((await run(control, 'registry', 'rm', 'm@2')).notes).toContain('alias m@production, backend far');
  expect((await run(control, 'registry', 'archive', 'm@2')).notes).toContain('backend far');
  expect((await run(control, 'registry', 'rm', 'm@production')).code).toBe(2);
  const taken = await run(control, 'registry', 'alias', 'm', 'production', '--remove');
  expect(taken).toMatchObject({ code: 1, notes: expect.stringContaining('is named by backend far') });
  expect((await run(control, 'registry', 'rm', 'm@1')).code).toBe(0);
});
