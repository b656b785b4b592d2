import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TextCutter } from './text-cutter.ts';

function cut(stops: string[], pieces: string[]): string {
  const cutter = new TextCutter(stops);
  let text = '';
  for (const piece of pieces) text += cutter.push(piece);
  return text + cutter.end();
}

test('the text ends before a stop string that is split over pieces', () => {
  expect(cut(['STOP'], ['one S', 'TO', 'P two'])).toBe('one ');
});

test('of two that overlap, the one that is complete first counts', () => {
  expect(cut(['abcd', 'bc'], ['abcd'])).toBe('a');
  expect(cut(['abcd', 'bc'], ['a', 'b', 'c', 'd'])).toBe('a');
});

test('what only looked like a stop string comes through', () => {
  expect(cut(['STOP'], ['one ST', 'EP'])).toBe('one STEP');
  expect(cut(['STOP'], ['one STO'])).toBe('one STO');
});

test('the same whole text and the same stops give the same answer, whatever the pieces', () => {
  const letters = fc.constantFrom('a', 'b', 'é', '😀');
  const words = fc.array(letters, { maxLength: 30 }).map((list) => list.join(''));
  const stop = fc.array(letters, { minLength: 1, maxLength: 4 }).map((list) => list.join(''));
  fc.assert(
    fc.property(fc.array(words, { maxLength: 8 }), fc.array(stop, { maxLength: 3 }), (pieces, stops) => {
      const whole = pieces.join('');
      const found = stops
        .map((text) => ({ text, at: whole.indexOf(text), end: whole.indexOf(text) + text.length }))
        .filter(({ at }) => at >= 0)
        .sort((a, b) => a.end - b.end || a.at - b.at)[0];
      const expected = found ? whole.slice(0, found.at) : whole;
      expect(cut(stops, pieces)).toBe(expected);
    }),
    { numRuns: 2000 },
  );
});
