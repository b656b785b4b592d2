import { Buffer } from 'node:buffer';
import { parse, tokenize } from '@huggingface/jinja';
import { type ConfigIo, unreadable } from './files.ts';

/** Files of models that are named in a configuration: whether they are what they are named as, as far as that is told at once. */

/** Beyond that nothing but the beginning is looked at. */
const TOKENIZER_BYTES_MAX = 64 * 1024 * 1024;
const GGUF = Buffer.from('GGUF');

/** Why a file is no tokenizer; undefined where it looks like one: a vocabulary is read by who makes tokens. */
export function tokenizerFault(io: ConfigIo, path: string): string | undefined {
  const cause = unreadable(io, path);
  if (cause !== undefined) return cause;
  if (GGUF.equals(io.readFile(path, GGUF.length))) return undefined;
  const bytes = Buffer.from(io.readFile(path, TOKENIZER_BYTES_MAX));
  if (bytes.length === 0) return 'is empty';
  if (!/^\s*\{/.test(bytes.toString('latin1', 0, 1024))) return 'is neither a tokenizer.json nor a GGUF file';
  if (!bytes.includes('"model"')) return 'is no tokenizer.json: it has no "model"';
  const isCut =
    bytes.length < TOKENIZER_BYTES_MAX &&
    !/\}\s*$/.test(bytes.toString('latin1', Math.max(0, bytes.length - 1024)));
  return isCut ? 'is no whole tokenizer.json: its end is missing' : undefined;
}

/** Why a text is no chat template; undefined where it is one. */
export function templateFault(text: string): string | undefined {
  try {
    parse(tokenize(text));
    return undefined;
  } catch (error) {
    const ends = error instanceof TypeError; // the parser runs over the end
    return `is no chat template: ${ends ? 'it ends within a block' : (error as Error).message.split('\n')[0]!}`;
  }
}
