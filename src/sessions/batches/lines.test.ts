import type { FileHandle } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFile } from './check.ts';
import { readLineRequest } from './line-request.ts';
import { LineReader, LineSet } from './lines.ts';

/** A file that is read in pieces of any size. */
function fileOf(bytes: Buffer, pieceMax = 65_536): FileHandle {
  return {
    read(into: Buffer, offset: number, length: number, position: number) {
      const bytesRead = bytes.copy(into, offset, position, position + Math.min(length, pieceMax));
      return Promise.resolve({ bytesRead, buffer: into });
    },
  } as unknown as FileHandle;
}

async function all(bytes: Buffer, bytesMax: number, pieceMax: number) {
  const reader = new LineReader(fileOf(bytes, pieceMax), bytesMax);
  const found = [];
  for (let line = await reader.next(); line; line = await reader.next()) found.push(line);
  return found;
}

describe('LineReader', () => {
  it('gives each line that is not blank, its number and its place, whatever the pieces', async () => {
    const line = fc.oneof(
      fc.constantFrom('', ' ', '\t\r', 'x', '\r', '{"a":1}\r', '\uFEFF'),
      fc.string({ maxLength: 50 }).map((text) => text.replaceAll('\n', '')),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 30 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 4, max: 60 }),
        async (lines, ended, pieceMax, bytesMax) => {
          const bytes = Buffer.from(lines.join('\n') + (ended ? '\n' : ''));
          const bare = bytes.subarray(0, 3).equals(Buffer.from('\uFEFF')) ? bytes.subarray(3) : bytes;
          const expected = bare
            .toString('latin1')
            .split('\n')
            .map((text, at) => ({ text, line: at }))
            .filter(({ text }) => /[^ \t\r]/.test(text));
          const found = await all(bytes, bytesMax, pieceMax);
          expect(found.map(({ line }) => line)).toEqual(expected.map(({ line }) => line));
          found.forEach(({ bytes: own, offset, length }, at) => {
            const { text } = expected[at]!;
            expect(bytes.toString('latin1', offset, offset + length)).toBe(text);
            expect(own?.toString('latin1')).toBe(text.length > bytesMax ? undefined : text);
          });
        },
      ),
      { numRuns: 500 },
    );
  });

  it('holds no more than a line may have', async () => {
    const found = await all(Buffer.from(`a\n${'x'.repeat(1_000_000)}\nb`), 1000, 100);
    expect(found.map(({ line, length, bytes }) => [line, length, bytes?.toString()])).toEqual([
      [0, 1, 'a'],
      [1, 1_000_000, undefined],
      [2, 1, 'b'],
    ]);
  });
});

it('LineSet has what was added, and nothing else', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(50_000)), fc.array(fc.nat(50_000)), (added, others) => {
      const set = new LineSet();
      for (const line of added) set.add(line);
      for (const line of [...added, ...others]) expect(set.has(line)).toBe(added.includes(line));
    }),
  );
});

const URL = '/v1/chat/completions';
const good = { custom_id: 'a', method: 'POST', url: URL, body: { model: 'chat' } };

describe('readLineRequest', () => {
  it("finds the body's own bytes", () => {
    const text =
      ' {"body" : {"seed":12345678901234567890, "model":"ch\\u0061t"} , "x":[{}], "url":"/v1/chat/completions","method":"POST","custom_id":"\\u00e9"}\r';
    const bytes = Buffer.from(text);
    const read = readLineRequest(bytes, URL);
    expect(read).toMatchObject({ customId: 'é', model: 'chat' });
    const { start, end } = read as { start: number; end: number };
    expect(bytes.toString('utf8', start, end)).toBe('{"seed":12345678901234567890, "model":"ch\\u0061t"}');
  });

  it.each([
    ['invalid_json_line', '{nope'],
    ['invalid_json_line', '[1]'],
    ['invalid_json_line', 'null'],
    ['invalid_json_line', '{"custom_id":"a","custom_id":"b"}'],
    ['invalid_json_line', '{"body":{"a":[}}'],
    ['missing_custom_id', { ...good, custom_id: undefined }],
    ['missing_custom_id', { ...good, custom_id: 7 }],
    ['missing_custom_id', { ...good, custom_id: '' }],
    ['invalid_custom_id', { ...good, custom_id: 'x'.repeat(600) }],
    ['invalid_method', { ...good, method: 'GET' }],
    ['invalid_method', { ...good, method: undefined }],
    ['invalid_url', { ...good, url: '/v1/embeddings' }],
    ['missing_body', { ...good, body: undefined }],
    ['invalid_body', { ...good, body: 'text' }],
    ['invalid_body', { ...good, body: { model: 'chat', stream: true } }],
    ['missing_model', { ...good, body: {} }],
    ['missing_model', { ...good, body: { model: null } }],
  ])('says %s of %j', (code, line) => {
    const bytes = Buffer.from(typeof line === 'string' ? line : JSON.stringify(line));
    expect(readLineRequest(bytes, URL)).toMatchObject({ code, message: expect.stringMatching(/\.$/) });
  });

  it('says so of bytes that are no UTF-8', () => {
    const bytes = Buffer.from(JSON.stringify(good).replace('"a"', '"\xff"'), 'latin1');
    expect(readLineRequest(bytes, URL)).toMatchObject({ code: 'invalid_json_line' });
  });
});

describe('checkFile', () => {
  const check = (lines: readonly unknown[], more: { linesMax?: number; bytesMax?: number } = {}) =>
    checkFile(fileOf(Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))), {
      endpoint: URL,
      linesMax: 1000,
      bytesMax: 1000,
      whyNot: (model) => (model === 'chat' ? undefined : `no ${model}`),
      ended: () => false,
      ...more,
    });
  const line = (i: number, model = 'chat') => ({ ...good, custom_id: String(i), body: { model } });

  it('counts the lines of a good file', async () => {
    expect(await check([line(1), line(2)])).toEqual({ total: 2 });
  });

  it.each([
    ['no line', [], {}, [[null, 'empty_file']]],
    ['an id twice', [line(1), line(2), line(1)], {}, [[3, 'duplicate_custom_id']]],
    [
      'unknown models',
      [line(1, 'x'), line(2), line(3, 'x')],
      {},
      [
        [1, 'model_not_found'],
        [3, 'model_not_found'],
      ],
    ],
    ['too many', [line(1), line(2), line(3)], { linesMax: 2 }, [[3, 'too_many_lines']]],
    ['a long one', [line(1), { ...line(2), x: 'y'.repeat(2000) }], {}, [[2, 'line_too_long']]],
  ])('tells a file with %s', async (_, lines, more, expected) => {
    const checked = (await check(lines, more)) as { faults: { line: number; code: string }[] };
    expect(checked.faults.map(({ line, code }) => [line, code])).toEqual(expected);
  });

  it('tells a hundred faults at most', async () => {
    const checked = (await check(Array.from({ length: 500 }, () => ({})))) as { faults: unknown[] };
    expect(checked.faults).toHaveLength(100);
  });
});
