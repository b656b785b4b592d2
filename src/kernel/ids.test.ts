import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { idMaker, idTime } from './ids.ts';
import { seededRandom } from './random.ts';

const MS_MAX = 32 ** 9 - 1;

describe('ids', () => {
  it('carry the time at which they were made', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MS_MAX }), fc.integer(), (ms, seed) => {
        expect(idTime(idMaker('req', seededRandom(seed))(ms))).toBe(ms);
      }),
    );
  });

  it('sort by time', () => {
    const make = idMaker('ev', seededRandom(1));
    const ids = [1, 2, 31, 32, 1_796_043_923_882, 1_796_043_923_883].map((ms) => make(ms));
    expect(ids.toSorted()).toEqual(ids);
  });

  it('are all different, within one millisecond too', () => {
    const make = idMaker('req', seededRandom(2));
    expect(new Set(Array.from({ length: 10_000 }, () => make(5))).size).toBe(10_000);
  });

  it.each([
    '',
    'req_',
    'req_1m8p82bq0r4w07rr',
    'REQ_1m8p82bq0r4w07rrg',
    'req_1m8p82bq0r4w07rr-',
    'my-own-id',
    'req_ilou00000r4w07rrg',
  ])('give no time for %j, which is none', (text) => expect(idTime(text)).toBeUndefined());
});
