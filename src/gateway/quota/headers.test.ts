import { expect, test } from 'vitest';
import { TokenBucket } from '../../policies/token-bucket/index.ts';
import { addRateLimits, formatReset } from './headers.ts';
import type { Rate } from './reservation.ts';

test.each([
  [0, '0s'],
  [0.2, '1ms'],
  [119.5, '120ms'],
  [999.9, '1s'],
  [1000, '1s'],
  [8640, '8.64s'],
  [59_994, '1m0s'],
  [60_000, '1m0s'],
  [359_000.5, '6m0s'],
  [3_599_999, '1h0m0s'],
  [90_061_000, '25h1m1s'],
])('%d ms until all is there again are written %s', (ms, written) => {
  expect(formatReset(ms)).toBe(written);
});

test('tells of several limits the one with the least left, and never less than nothing', () => {
  const rate = (kind: 'requests' | 'tokens', burst: number, level: number): Rate => {
    const limit = {
      key: '',
      tenant: 'web',
      route: undefined,
      kind,
      perSecond: 10,
      burst,
      perSeconds: 1,
      setting: '',
    };
    const bucket = new TokenBucket(limit, 0, level);
    return { limit, bucket, closed: false, owed: 0, dirty: false, share: undefined };
  };
  const headers: string[] = [];
  addRateLimits([rate('tokens', 100, 80), rate('tokens', 900, 79.9), rate('requests', 5, -2)], 0, headers);
  expect(headers).toEqual([
    ...['x-ratelimit-limit-requests', '5', 'x-ratelimit-remaining-requests', '0'],
    ...['x-ratelimit-reset-requests', '700ms', 'x-ratelimit-limit-tokens', '900'],
    ...['x-ratelimit-remaining-tokens', '79', 'x-ratelimit-reset-tokens', '1m23s'],
  ]);
});
