/**
 * How llama.cpp cuts text into words before it merges bytes, by the name in `tokenizer.ggml.pre`: the expressions of
 * llama_vocab in src/llama-vocab.cpp (MIT), written as a tokenizer.json has them.
 */
export interface Words {
  preTokenizer: Record<string, unknown>;
  /** A word that is a token is one, whatever the merges say. */
  ignoreMerges: boolean;
  /** Where the file does not say it. */
  addBos: boolean;
}

const BYTES = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
const GPT2 = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };

const split = (expression: string) => ({
  type: 'Split',
  pattern: { Regex: expression },
  behavior: 'Isolated',
  invert: false,
});
const sequence = (...steps: object[]) => ({ type: 'Sequence', pretokenizers: steps });

const digitsThen = sequence({ type: 'Digits', individual_digits: true }, GPT2);
const llama3 = sequence(
  split(
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  ),
  BYTES,
);
const qwen2 = sequence(
  split(
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  ),
  BYTES,
);

const KINDS: readonly {
  names: readonly string[];
  preTokenizer: Words['preTokenizer'];
  more?: Partial<Words>;
}[] = [
  { names: ['gpt-2', 'mpt', 'olmo', 'jais', 'phi-2'], preTokenizer: GPT2 },
  { names: ['smollm', 'starcoder', 'refact', 'codeshell'], preTokenizer: digitsThen },
  {
    names: ['llama-bpe', 'llama3', 'llama-v3', 'falcon3'],
    preTokenizer: llama3,
    more: { ignoreMerges: true, addBos: true },
  },
  { names: ['dbrx', 'smaug-bpe'], preTokenizer: llama3 },
  { names: ['qwen2', 'stablelm2', 'hunyuan', 'megrez', 'deepseek-r1-qwen'], preTokenizer: qwen2 },
];

/** In words, where the way is not known: tokens are then bounded, or the engine is asked. */
export function wordsOf(pre: string): Words | string {
  const kind = KINDS.find(({ names }) => names.includes(pre));
  if (!kind) return `the way '${pre}' of cutting text into words is not known`;
  return { preTokenizer: kind.preTokenizer, ignoreMerges: false, addBos: false, ...kind.more };
}
