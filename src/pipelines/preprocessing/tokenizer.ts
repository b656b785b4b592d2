import { Tokenizer } from '@huggingface/tokenizers';
import { readTokenizerFile } from '../context/tokenizer-file.ts';

/** A tokenizer that was read; it belongs to the thread that uses it. */
export interface OpenTokenizer {
  /**
   * The ids of a text's tokens. `specials`: with those that the tokenizer puts around a text of its own. Of a text with more
   * than `cutAt` tokens the last ones of its own are left out; what is put around them stays.
   */
  encode(text: string, specials: boolean, cutAt: number | undefined): readonly number[];
}

/** Reads a `tokenizer.json`, or the vocabulary of a GGUF file; throws where it is neither. */
export function openTokenizer(path: string): OpenTokenizer {
  const described = readTokenizerFile(path);
  // How texts are cut and filled up is said by who asks: what the file has of that is for another program.
  const tokenizer = new Tokenizer({ ...described, truncation: null, padding: null }, {});
  const around = findAround(tokenizer);
  return {
    encode(text, specials, cutAt) {
      const { ids } = tokenizer.encode(text, { add_special_tokens: specials });
      if (cutAt === undefined || ids.length <= cutAt) return ids;
      if (!specials) return ids.slice(0, cutAt);
      const { before, after } = around;
      const room = Math.max(0, cutAt - before - after);
      return [
        ...ids.slice(0, before),
        ...ids.slice(before, before + room),
        ...ids.slice(ids.length - after),
      ].slice(0, cutAt);
    },
  };
}

/** How many tokens are put before a text, and how many after it. */
function findAround(tokenizer: Tokenizer): { before: number; after: number } {
  const bare: number[] = tokenizer.encode('a', { add_special_tokens: false }).ids;
  const full: number[] = tokenizer.encode('a', { add_special_tokens: true }).ids;
  for (let before = 0; before + bare.length <= full.length; before++) {
    if (bare.every((id, at) => full[before + at] === id)) {
      return { before, after: full.length - before - bare.length };
    }
  }
  return { before: 0, after: 0 };
}
