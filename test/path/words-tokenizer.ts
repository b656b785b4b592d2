import type { OpenTokenizer } from '../../src/pipelines/preprocessing/tokenizer.ts';

/** A tokenizer for tests and simulations: a token for each word, by its letters, with one before and one after a text. */
export function words(path: string): OpenTokenizer {
  if (path !== 'words') throw new Error(`there is no tokenizer at ${path}`);
  return {
    encode(text, specials, cutAt) {
      const own = text.split(' ').flatMap((word) => (word === '' ? [] : [idOf(word)]));
      if (!specials) return own.slice(0, cutAt);
      return [1, ...own.slice(0, cutAt === undefined ? undefined : Math.max(0, cutAt - 2)), 2];
    },
  };
}

/** Of letters of the alphabet, ids of their own. */
function idOf(word: string): number {
  let id = 7;
  for (const letter of word) id = (id * 31 + letter.codePointAt(0)!) % 29_989;
  return id + 3;
}
