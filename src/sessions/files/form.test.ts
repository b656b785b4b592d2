import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { type Form, type FormRefusal, readForm } from './form.ts';

const folder = mkdtempSync(join(tmpdir(), 'armature-form-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

const BOUNDARY = '----fence';
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

function part(name: string, content: Buffer | string, filename?: string): Buffer {
  const file =
    filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`;
  return Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
}
const form = (...parts: Buffer[]) => Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)]);

/** What becomes of a body that comes in pieces of that size; `bytes` are those on the disk. */
async function read(body: Buffer, { size = body.length || 1, bytesMax = 1e6, contentType = TYPE } = {}) {
  const path = join(folder, `f${count++}`);
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) pieces.push(body.subarray(at, at + size));
  const incoming = Readable.from(pieces, { objectMode: false });
  const result = await new Promise<Form | FormRefusal>((resolve) => {
    readForm(incoming, { contentType, path, bytesMax }, resolve);
  });
  if (typeof result === 'object' && 'fields' in result) {
    const bytes = result.file && readFileSync(path);
    rmSync(path, { force: true });
    return { fields: Object.fromEntries(result.fields), file: result.file, bytes };
  }
  return result;
}

describe('readForm', () => {
  it('keeps a file to the byte, whatever is in it and however it comes', async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ maxLength: 20_000, size: 'max' }),
      fc
        .array(fc.constantFrom(`\r\n--${BOUNDARY.slice(0, 6)}`, '\r\n--', '\r', '\n', '-', 'x'), {
          maxLength: 60,
        })
        .map((list) => Buffer.from(list.join(''))),
    );
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
      .filter((text) => !/["\\\p{Cc}/;%]|^\.{1,2}$/u.test(text) && text === text.trim());
    await fc.assert(
      fc.asyncProperty(
        content,
        name,
        fc.integer({ min: 1, max: 5000 }),
        fc.boolean(),
        async (bytes, filename, size, after) => {
          const parts = [part('purpose', 'batch'), part('file', Buffer.from(bytes), filename)];
          const got = await read(form(...(after ? parts.reverse() : parts)), { size });
          expect(got).toEqual({
            fields: { purpose: 'batch' },
            file: { filename, bytes: bytes.length },
            bytes: Buffer.from(bytes),
          });
        },
      ),
      { numRuns: 200 },
    );
  });

  it.each(['.', '..', 'a/..', ''])(
    'calls a file by a name of its own where %j leads to none',
    async (given) => {
      const got = await read(form(part('purpose', 'batch'), part('file', 'x', given)));
      expect(got).toMatchObject({ file: { filename: 'file', bytes: 1 } });
    },
  );

  it.each([
    ['no boundary', form(part('file', 'x', 'a')), 'multipart/form-data', /Boundary/],
    ['another boundary', form(part('file', 'x', 'a')), 'multipart/form-data; boundary=zzz', /./],
    ['nothing', Buffer.alloc(0), TYPE, /./],
    ['a file under another name', form(part('attachment', 'x', 'a')), TYPE, /'attachment'/],
    ['two files', form(part('file', 'x', 'a'), part('file', 'y', 'b')), TYPE, /more than one file/],
    ['too many fields', form(...Array.from({ length: 40 }, (_, i) => part(`f${i}`, 'x'))), TYPE, /fields/],
    ['a long field', form(part('purpose', 'x'.repeat(70_000))), TYPE, /longer than/],
    ['a long name', form(part('file', 'x', 'n'.repeat(2000))), TYPE, /filename/],
  ])('says what is wrong with one that has %s', async (_, body, contentType, message) => {
    expect(await read(body, { contentType })).toEqual({ wrong: expect.stringMatching(message) });
  });

  it('refuses what is too large by a byte, and leaves nothing', async () => {
    const body = (bytes: number) => form(part('file', 'x'.repeat(bytes), 'a'));
    expect(await read(body(1000), { bytesMax: 1000 })).toMatchObject({ file: { bytes: 1000 } });
    for (const size of [1, 7, 5000])
      expect(await read(body(1001), { bytesMax: 1000, size })).toBe('too-large');
    expect(await read(body(100_000), { bytesMax: 1000, size: 100 })).toBe('too-large');
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]));
  });

  it('ends with one cut anywhere, and leaves nothing', async () => {
    const whole = form(part('purpose', 'batch'), part('file', 'x'.repeat(500), 'a'));
    for (let end = 0; end < whole.length - 4; end += 3) {
      expect([end, await read(whole.subarray(0, end), { size: 50 })]).toEqual([
        end,
        { wrong: expect.any(String) },
      ]);
    }
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]));
  });

  it('survives any bytes', async () => {
    const token = fc.constantFrom(
      `--${BOUNDARY}`,
      '--',
      '\r\n',
      'Content-Disposition: form-data; name="file"',
      '; filename="a"',
      'Content-Type:',
      ' text/plain; charset=nope',
      ':',
      '"',
      '\0',
      'x',
      `${'h'.repeat(9000)}: y`,
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(token, { maxLength: 40 }),
        fc.integer({ min: 1, max: 100 }),
        async (tokens, size) => {
          await read(Buffer.from(tokens.join('')), { size });
        },
      ),
      { numRuns: 500 },
    );
  });

  it('tells that the disk does not take it', async () => {
    const incoming = Readable.from([form(part('file', 'x', 'a'))], { objectMode: false });
    const path = join(folder, 'nowhere', 'f');
    const result = await new Promise<Form | FormRefusal>((resolve) => {
      readForm(incoming, { contentType: TYPE, path, bytesMax: 10 }, resolve);
    });
    expect(result).toMatchObject({ disk: { code: 'ENOENT' } });
  });

  it('stops when nobody wants it any more, and leaves nothing', async () => {
    const incoming = new Readable({ read() {} });
    const path = join(folder, 'left');
    const abort = readForm(incoming, { contentType: TYPE, path, bytesMax: 1e6 }, () =>
      expect.fail('called back'),
    );
    incoming.push(part('file', 'x'.repeat(100_000), 'a').subarray(0, 90_000));
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual(['left']));
    abort();
    incoming.push(null);
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]));
  });
});
