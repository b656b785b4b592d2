import fc from 'fast-check';
import { expect, it } from 'vitest';
import { boundaryAt, CUT_MARK, cutText } from './cut.ts';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const pieces = fc.constantFrom(
  'a',
  ' ',
  '\r\n',
  'é',
  'e\u0301',
  '👩‍👩‍👧',
  '🇩🇪',
  '🇩',
  '한',
  'ᄒ',
  'ᅡ',
  '\u0600',
  'नि',
  '\ud83d',
  '\u200d',
);
const text = fc.array(pieces, { maxLength: 80 }).map((parts) => parts.join(''));

it('never ends within a character', () => {
  fc.assert(
    fc.property(text, fc.nat(400), (said, at) => {
      const boundaries = new Set([said.length, ...[...graphemes.segment(said)].map(({ index }) => index)]);
      expect(boundaries.has(boundaryAt(said, at))).toBe(true);
      expect(boundaryAt(said, at)).toBeLessThanOrEqual(at);
    }),
    { numRuns: 2000 },
  );
});

it('finds the character in a long text as well, and one that is long itself', () => {
  const long = `${'x '.repeat(50_000)}${'🇩🇪'.repeat(5_000)}${'a\u0301'.repeat(3_000)}`;
  expect(boundaryAt(long, 100_000 + 4 * 2_500 + 2)).toBe(100_000 + 4 * 2_500);
  expect(boundaryAt(long, 120_003)).toBe(120_002);
  const zalgo = `a${'\u0301'.repeat(10_000)}b`;
  expect(boundaryAt(zalgo, 9_000)).toBe(0);
});

it('leaves beginning and end, and is never longer than asked for', () => {
  fc.assert(
    fc.property(text, fc.nat(100), (said, length) => {
      const cut = cutText(said, length);
      if (length >= said.length) expect(cut).toBe(said);
      else expect(cut.length).toBeLessThanOrEqual(length + CUT_MARK.length);
    }),
  );
});
