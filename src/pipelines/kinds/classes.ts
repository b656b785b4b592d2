import type { StageSettings, StageValue } from './contracts.ts';

/** Of a long answer a class is looked for in so many characters at its beginning, and as many at its end. */
const CHARACTERS_MAX = 2000;

/** What a text that stands in for the answer of a stage says: the class as well, where it is one. */
export function standIn(stage: StageSettings, text: string): StageValue {
  return classNames(stage).includes(text) ? { text, class: text } : { text };
}

/** What a stage's answer can be, where that is one of several. */
function classNames({ classes, labels }: StageSettings): readonly string[] {
  if (classes) return Array.isArray(classes) ? classes : Object.keys(classes);
  return labels ?? [];
}

/**
 * The class that a model's answer names: the answer is the class itself, whatever stands around it (case, quotes, a full stop),
 * or there is only one class of which it speaks. Undefined where that cannot be told.
 */
export function namedClass(answer: string, classes: readonly string[]): string | undefined {
  const long = answer.length > 2 * CHARACTERS_MAX;
  const ends = long ? `${answer.slice(0, CHARACTERS_MAX)} ${answer.slice(-CHARACTERS_MAX)}` : answer;
  const text = ends.toLowerCase().trim();
  const bare = stripped(text);
  const same = classes.find((name) => name.toLowerCase() === text || stripped(name.toLowerCase()) === bare);
  if (same !== undefined) return same;
  // The longer ones first: who speaks of "fake news" does not speak of "news".
  const found: { name: string; from: number; to: number }[] = [];
  for (const name of [...classes].sort((a, b) => b.length - a.length)) {
    for (const from of placesOf(text, name.toLowerCase().trim())) {
      const to = from + name.trim().length;
      if (!found.some((other) => from >= other.from && to <= other.to)) found.push({ name, from, to });
    }
  }
  const names = new Set(found.map(({ name }) => name));
  return names.size === 1 ? found[0]!.name : undefined;
}

/** Without what is neither letter nor digit at both ends. */
function stripped(text: string): string {
  return text.replace(/^[^\p{L}\p{N}]+/u, '').replace(/[^\p{L}\p{N}]+$/u, '');
}

/** Where a word, or several, stand in a text by themselves. */
function placesOf(text: string, words: string): number[] {
  const places: number[] = [];
  if (words === '') return places;
  for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + 1)) {
    const isWord =
      !LETTER_BEFORE.test(text.slice(Math.max(0, at - 2), at)) &&
      !LETTER_AFTER.test(text.slice(at + words.length, at + words.length + 2));
    if (isWord) places.push(at);
  }
  return places;
}

const LETTER_BEFORE = /[\p{L}\p{N}_]$/u;
const LETTER_AFTER = /^[\p{L}\p{N}_]/u;
