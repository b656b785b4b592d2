import { deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ErrorAnswer } from './error-answer.ts';

function read(body: Buffer, headers: Record<string, string> = {}) {
  const answer = new ErrorAnswer(400, headers);
  answer.add(body.subarray(0, 5));
  answer.add(body.subarray(5));
  return answer.read();
}

describe('ErrorAnswer', () => {
  const words = Buffer.from('{"error":"too long"}');

  it('gives the words that came', () => {
    expect(read(words, { 'x-a': 'b' })).toEqual({ headers: { 'x-a': 'b' }, body: words });
  });

  it.each([
    ['gzip', gzipSync(words)],
    ['deflate', deflateSync(words)],
  ])('undoes %s', (coding, body) => {
    expect(read(body, { 'content-encoding': coding, 'x-a': 'b' })).toEqual({
      headers: { 'x-a': 'b' },
      body: words,
    });
  });

  it.each([
    ['cut short', 'gzip', gzipSync(words).subarray(0, 20)],
    ['no gzip', 'gzip', words],
    ['too long when undone', 'gzip', gzipSync(Buffer.alloc(1_000_000))],
    ['of a coding not known', 'br', words],
  ])('leaves as it is what is %s', (_, coding, body) => {
    expect(read(body, { 'content-encoding': coding })).toEqual({
      headers: { 'content-encoding': coding },
      body,
    });
  });

  it('says when more comes than is read', () => {
    const answer = new ErrorAnswer(500, {});
    expect(answer.add(Buffer.alloc(64 * 1024))).toBe(true);
    expect(answer.add(Buffer.alloc(1))).toBe(false);
    expect(answer.read().body.length).toBe(64 * 1024);
  });
});
