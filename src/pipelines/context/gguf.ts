import { closeSync, openSync, readSync } from 'node:fs';
import { ggufValues, isGgufHead } from '../../protocols/gguf/header.ts';
import { wordsOf } from './gguf-pre-tokenizers.ts';

/** What the header of a GGUF file says of prompts. */
export interface Gguf {
  /** Tokens that the model was trained for. */
  contextTokens: number | undefined;
  /** Its chat template, in Jinja. */
  template: string | undefined;
  bos: string | undefined;
  eos: string | undefined;
  /** llama.cpp puts `bos` before a prompt that does not begin with it. */
  addBos: boolean;
  /** The same vocabulary as a tokenizer.json; or in words why it cannot be told exactly. */
  tokenizer: Record<string, unknown> | string;
}

/** Types of tokens in `tokenizer.ggml.token_type`. */
const CONTROL = 3;
const USER_DEFINED = 4;

/** Reads the header alone; the model is not loaded. Throws, in words, where the file is none. */
export function readGguf(path: string): Gguf {
  const file = openSync(path, 'r');
  try {
    return read(
      ggufValues((at, count) => {
        const bytes = Buffer.alloc(count);
        return bytes.subarray(0, readSync(file, bytes, 0, count, at));
      }),
    );
  } finally {
    closeSync(file);
  }
}

export function isGguf(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(4);
    return isGgufHead(head.subarray(0, readSync(file, head, 0, head.length, 0)));
  } finally {
    closeSync(file);
  }
}

function read(found: ReadonlyMap<string, unknown>): Gguf {
  const of = <T extends string | number | boolean>(key: string, like: T): T | undefined => {
    const value = found.get(key);
    return typeof value === typeof like ? (value as T) : undefined;
  };
  const architecture = of<string>('general.architecture', '');
  const tokens = (found.get('tokenizer.ggml.tokens') as string[] | undefined) ?? [];
  const named = (which: string) => tokens[of<number>(`tokenizer.ggml.${which}_token_id`, 0) ?? -1];
  const words = wordsOf(of<string>('tokenizer.ggml.pre', '') ?? '');
  return {
    contextTokens: of<number>(`${architecture}.context_length`, 0),
    template: of<string>('tokenizer.chat_template', ''),
    bos: named('bos'),
    eos: named('eos'),
    addBos:
      of<boolean>('tokenizer.ggml.add_bos_token', false) ?? (typeof words === 'string' ? true : words.addBos),
    tokenizer: tokenizerOf(found, tokens, words),
  };
}

/** The vocabulary as @huggingface/tokenizers takes it: merges of bytes, cut into words in the way that its `pre` names. */
function tokenizerOf(
  found: ReadonlyMap<string, unknown>,
  tokens: readonly string[],
  words: ReturnType<typeof wordsOf>,
): Gguf['tokenizer'] {
  const model = found.get('tokenizer.ggml.model');
  if (model !== 'gpt2') return `a vocabulary of kind '${String(model)}' is not read`;
  if (typeof words === 'string') return words;
  const types = (found.get('tokenizer.ggml.token_type') as number[] | undefined) ?? [];
  const merges = found.get('tokenizer.ggml.merges');
  if (!Array.isArray(merges)) return 'it has no merges';
  const added = tokens.flatMap((content, id) => {
    const type = types[id];
    if (type !== CONTROL && type !== USER_DEFINED) return [];
    const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    return [{ id, content, ...plain, special: type === CONTROL }];
  });
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: words.preTokenizer,
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: words.ignoreMerges,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}
