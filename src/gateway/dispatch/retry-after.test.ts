import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAfterMs } from './retry-after.ts';

const NOW = Date.UTC(2026, 10, 30, 12, 0, 0);
const read = (retryAfter: string | string[], more: Record<string, string> = {}) =>
  retryAfterMs({ 'retry-after': retryAfter, ...more }, NOW);

describe('how long an engine asks to be left alone', () => {
  it.each([
    ['0', 0],
    ['5', 5_000],
    [' 5 ', 5_000],
    ['0.25', 250],
    ['1.5', 1_500],
    ['Mon, 30 Nov 2026 12:00:07 GMT', 7_000],
    ['Monday, 30-Nov-26 12:00:07 GMT', 7_000],
    ['Mon Nov 30 12:00:07 2026', 7_000],
    ['Tue Dec  1 12:00:00 2026', 86_400_000],
    ['2026-11-30T12:00:07.5Z', 7_500],
    ['2026-11-30T13:00:07+01:00', 7_000],
    ['Mon, 30 Nov 2026 11:00:00 GMT', 0],
    ['Thursday, 01-Jan-70 00:00:00 GMT', Date.UTC(2070, 0, 1) - NOW],
    ['Friday, 01-Jan-99 00:00:00 GMT', 0],
    ['9'.repeat(400), Number.POSITIVE_INFINITY],
  ])('reads %s', (text, ms) => {
    expect(read(text)).toBe(ms);
  });

  it.each([
    '',
    '-5',
    '+5',
    '5s',
    '1e3',
    '0x10',
    'soon',
    '5, 6',
    'Mon, 99 Foo 2026 12:00:00 GMT',
    'NaN',
    '５',
  ])('does not read %j', (text) => {
    expect(read(text)).toBeUndefined();
  });

  it('goes by the engine’s own clock where it tells it', () => {
    const date = 'Mon, 30 Nov 2026 11:30:00 GMT'; // half an hour slow
    expect(read('Mon, 30 Nov 2026 11:30:04 GMT', { date })).toBe(4_000);
    expect(read('4', { date })).toBe(4_000);
    expect(read('Mon, 30 Nov 2026 12:00:04 GMT', { date: 'no date' })).toBe(4_000);
  });

  it('takes the milliseconds that some tell beside it, and the longest of several', () => {
    expect(read('2', { 'retry-after-ms': '1250' })).toBe(1_250);
    expect(read('2', { 'retry-after-ms': 'x' })).toBe(2_000);
    expect(read(['2', '7', 'x'])).toBe(7_000);
    expect(retryAfterMs({}, NOW)).toBeUndefined();
  });

  it('is never negative, never no number, and never an error, whatever is sent', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (after, ms, date) => {
        const found = retryAfterMs({ 'retry-after': after, 'retry-after-ms': ms, date }, NOW);
        if (found !== undefined) expect(found).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
