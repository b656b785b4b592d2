import { describe, expect, it } from 'vitest';
import { isEncoded, passedBack, readTraceparent } from './headers.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('readTraceparent', () => {
  it.each([
    [`00-${TRACE}-${SPAN}-01`, '01'],
    [`00-${TRACE}-${SPAN}-00`, '00'],
    [`cc-${TRACE}-${SPAN}-01`, '01'],
    [`01-${TRACE}-${SPAN}-01-what-comes-later`, '01'],
  ])('reads %s', (header, flags) => {
    expect(readTraceparent(header)).toEqual({ traceId: TRACE, flags });
  });

  it.each([
    undefined,
    '',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}`,
    `01-${TRACE}-${SPAN}-01-${'x'.repeat(600)}`,
  ])('passes over %s', (header) => {
    expect(readTraceparent(header)).toBeUndefined();
  });
});

describe('passedBack', () => {
  it("keeps back what is about the engine's own connection, and what Armature says itself", () => {
    expect(
      passedBack({
        'x-custom': '1',
        'x-many': ['a', 'b'],
        connection: 'keep-alive, X-Hop',
        'x-hop': '1',
        'keep-alive': 'timeout=5',
        'set-cookie': 'a=b',
        'x-armature-route': 'forged',
        'x-ratelimit-limit-requests': '5',
      }),
    ).toEqual(['x-custom', '1', 'x-many', 'a', 'x-many', 'b']);
  });
});

describe('isEncoded', () => {
  it.each([
    [undefined, false],
    ['', false],
    ['identity', false],
    ['gzip', true],
  ])('of %j is %j', (coding, encoded) => {
    expect(isEncoded(coding === undefined ? {} : { 'content-encoding': coding })).toBe(encoded);
  });
});
