import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, formatSize, parseDuration, parseRate, parseSize } from './units.ts';

describe('units', () => {
  it.each([
    ['450ms', 450],
    ['2s', 2000],
    ['1.5m', 90_000],
    ['5min', 300_000],
    ['24h', 86_400_000],
    ['30d', 2_592_000_000],
  ])('reads the duration %s', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each([
    ['100B', 100],
    ['1KB', 1000],
    ['512KiB', 524_288],
    ['8MiB', 8_388_608],
    ['1.5GiB', 1_610_612_736],
  ])('reads the size %s', (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it('reads rates', () => {
    expect(parseRate('200/s')).toEqual({ amount: 200, perSeconds: 1 });
    expect(parseRate('2000000/min')).toEqual({ amount: 2_000_000, perSeconds: 60 });
  });

  it.each(['', '5', 's', '-1s', '1 s', '1e3s', '1sec', '0x1s'])('reads nothing out of %j', (text) => {
    expect(parseDuration(text)).toBeUndefined();
    expect(parseSize(text)).toBeUndefined();
    expect(parseRate(text)).toBeUndefined();
  });

  it.each([
    [0, '0ms'],
    [450, '450ms'],
    [1500, '1.5s'],
    [120_000, '2m'],
    [5_400_000, '1.5h'],
    [2_592_000_000, '30d'],
  ])('writes %i ms as %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

  it('writes what it can read again, within a hundredth', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (value) => {
        expect(Math.abs(parseDuration(formatDuration(value))! / value - 1)).toBeLessThan(0.01);
        expect(Math.abs(parseSize(formatSize(value))! / value - 1)).toBeLessThan(0.01);
      }),
    );
  });
});
