import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseReader } from './response-reader.ts';

interface Heard {
  heads: { status: number; headers: Record<string, unknown> }[];
  body: string;
  whole: boolean[];
  fault: string | undefined;
}

/** What is heard when the bytes come in pieces cut at these places, and the connection then ends if `closes`. */
function hear(bytes: Buffer, cuts: readonly number[] = [], closes = false): Heard {
  const heard: Heard = { heads: [], body: '', whole: [], fault: undefined };
  const reader = new ResponseReader({
    onHead: (status, headers) => void heard.heads.push({ status, headers: { ...headers } }),
    onBody: (piece) => {
      heard.body += piece.toString('latin1');
    },
    onWhole: (reusable) => void heard.whole.push(reusable),
  });
  reader.expect();
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  for (let i = 1; i < places.length && heard.fault === undefined; i++) {
    heard.fault = reader.push(Buffer.from(bytes.subarray(places[i - 1], places[i])));
  }
  if (closes) heard.fault ??= reader.end();
  return heard;
}
const answer = (text: string, closes = false) => hear(Buffer.from(text, 'latin1'), [], closes);

const body = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const chunked = fc
  .array(fc.tuple(body, fc.boolean()), { maxLength: 6 })
  .map((parts) => parts.filter(([text]) => text !== ''))
  .map((parts) => ({
    body: parts.map(([text]) => text).join(''),
    framed: `Transfer-Encoding: chunked\r\n\r\n${parts
      .map(([text, extended]) => `${text.length.toString(16)}${extended ? ';x=1' : ''}\r\n${text}\r\n`)
      .join('')}0\r\nX-Trailer: 1\r\n\r\n`,
    closes: false,
  }));
const framed = fc.oneof(
  chunked,
  body.map((text) => ({
    body: text,
    framed: `Content-Length: ${text.length}\r\n\r\n${text}`,
    closes: false,
  })),
  body.map((text) => ({ body: text, framed: `Connection: close\r\n\r\n${text}`, closes: true })),
);
const interim = fc.array(
  fc.constantFrom('HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'),
  { maxLength: 3 },
);

describe('ResponseReader', () => {
  it('hears the same answer however its bytes are cut, in every framing', () => {
    fc.assert(
      fc.property(
        framed,
        interim,
        fc.integer({ min: 200, max: 599 }),
        fc.array(fc.nat(2000), { maxLength: 30 }),
        (one, before, status, cuts) => {
          fc.pre(status !== 204 && status !== 304);
          const text = `${before.join('')}HTTP/1.1 ${status} Any\r\nX-A: b\r\n${one.framed}`;
          const heard = hear(Buffer.from(text, 'latin1'), cuts, one.closes);
          expect(heard.fault).toBeUndefined();
          expect(heard.heads.map((head) => head.status)).toEqual([status]);
          expect(heard.heads[0]!.headers['x-a']).toBe('b');
          expect(heard.body).toBe(one.body);
          expect(heard.whole).toEqual([!one.closes]);
        },
      ),
    );
  });

  it('hears nothing whole in an answer that is cut short', () => {
    fc.assert(
      fc.property(framed, fc.nat(5000), (one, at) => {
        fc.pre(!one.closes);
        const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${one.framed}`, 'latin1');
        const heard = hear(bytes.subarray(0, at % bytes.length), [], true);
        expect(heard.whole).toEqual([]);
        expect(heard.fault).toBeTypeOf('string');
      }),
    );
  });

  it('never throws, and never hears more than one answer, whatever comes', () => {
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(
          'HTTP/1.1 200 OK\r\n',
          'Content-Length: 3\r\n',
          'Transfer-Encoding: chunked\r\n',
          '\r\n',
          '5\r\nhello\r\n',
          '0\r\n\r\n',
          'abc',
          '\n',
          '\r',
          ' x: y\r\n',
        ),
        fc.string({ maxLength: 20 }),
      ),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(pieces, fc.array(fc.nat(300), { maxLength: 10 }), (parts, cuts) => {
        expect(hear(Buffer.from(parts.join(''), 'latin1'), cuts, true).whole.length).toBeLessThanOrEqual(1);
      }),
    );
  });

  it.each([
    ['not http at all\r\n\r\n', 'the status line is not HTTP/1.1'],
    ['HTTP/1.1 banana OK\r\n\r\n', 'the status line is not HTTP/1.1'],
    ['HTTP/2 200 OK\r\n\r\n', 'the status line is not HTTP/1.1'],
    ['HTTP/1.1 101 Switching\r\n\r\n', 'the engine switched protocols without being asked'],
    [
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}',
      'the content length cannot be read',
    ],
    ['HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}', 'the content length cannot be read'],
    [
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n',
      'the body has two framings',
    ],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n', 'the transfer coding is not chunked'],
    [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
      'the size of a chunk cannot be read',
    ],
    [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n',
      'a chunk is longer than it says',
    ],
    [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n',
      'a line between chunks does not end with CRLF',
    ],
    ['HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n\r\n', 'a header line cannot be read'],
    ['HTTP/1.1 200 OK\r\nX-A : a\r\n\r\n', 'a header line cannot be read'],
    ['HTTP/1.1 200 OK\r\nno colon\r\n\r\n', 'a header line cannot be read'],
    ['HTTP/1.1 200 OK\r\nX-A: a\u0000b\r\n\r\n', 'a header has control characters'],
    ['HTTP/1.1 200 OK\r\nX-A: a\nX-B: b\r\n\r\n', 'a header has control characters'],
    [`HTTP/1.1 200 OK\r\nX-Big: ${'a'.repeat(70_000)}\r\n\r\n`, 'the head is too long'],
    [`HTTP/1.1 200 OK\r\nX-Big: ${'a'.repeat(70_000)}`, 'the head is too long'],
    [
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(2000)}`,
      'a line between chunks is too long',
    ],
    ['HTTP/1.1 100 Continue\r\n\r\n'.repeat(17), 'too many interim answers'],
  ])('refuses %j', (text, fault) => {
    expect(answer(text).fault).toBe(fault);
  });

  it.each([
    ['HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', true],
    ['HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}', true],
    ['HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}', false],
    ['HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}', false],
    ['HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}', true],
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n', false],
  ])('says of %j whether its connection may be used again', (text, reusable) => {
    expect(answer(text)).toMatchObject({ fault: undefined, whole: [reusable] });
  });

  it('keeps repeated headers apart', () => {
    expect(
      answer('HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\n__proto__: c\r\nContent-Length: 0\r\n\r\n')
        .heads[0]!.headers,
    ).toEqual(
      Object.assign(Object.create(null), {
        'set-cookie': ['a', 'b'],
        ['__proto__']: 'c',
        'content-length': '0',
      }),
    );
  });
});
