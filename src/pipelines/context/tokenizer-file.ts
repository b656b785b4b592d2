import { readFileSync } from 'node:fs';
import { exactTokenizer } from './exact-tokenizer.ts';
import { isGguf, readGguf } from './gguf.ts';

/**
 * What @huggingface/tokenizers makes a tokenizer of: a tokenizer.json, or the vocabulary of a GGUF file as one. Throws, in
 * words, where the file is neither, or has a vocabulary that is not known.
 */
export function readTokenizerFile(path: string): Record<string, unknown> {
  if (!isGguf(path)) return exactTokenizer(JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>);
  const { tokenizer } = readGguf(path);
  if (typeof tokenizer === 'string') throw new Error(tokenizer);
  return exactTokenizer(tokenizer);
}
