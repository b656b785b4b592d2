import { closeSync, openSync, readSync } from 'node:fs';
import { wordsOf } from './gguf-pre-tokenizers.ts';

/** What the header of a GGUF file says of prompts. Format: ggml/docs/gguf.md of llama.cpp, versions 2 and 3. */
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

const MAGIC = 'GGUF';
/** The header of the largest vocabularies has some 20 MB. */
const HEADER_BYTES_MAX = 256 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

const STRING = 8;
const ARRAY = 9;
/** Values of each other type: how many bytes they have, and how they are read. */
const SCALARS: Record<number, { size: number; read: (bytes: Buffer) => number | boolean }> = {
  0: { size: 1, read: (bytes) => bytes.readUInt8() },
  1: { size: 1, read: (bytes) => bytes.readInt8() },
  2: { size: 2, read: (bytes) => bytes.readUInt16LE() },
  3: { size: 2, read: (bytes) => bytes.readInt16LE() },
  4: { size: 4, read: (bytes) => bytes.readUInt32LE() },
  5: { size: 4, read: (bytes) => bytes.readInt32LE() },
  6: { size: 4, read: (bytes) => bytes.readFloatLE() },
  7: { size: 1, read: (bytes) => bytes.readUInt8() !== 0 },
  10: { size: 8, read: (bytes) => Number(bytes.readBigUInt64LE()) },
  11: { size: 8, read: (bytes) => Number(bytes.readBigInt64LE()) },
  12: { size: 8, read: (bytes) => bytes.readDoubleLE() },
};

/** Types of tokens in `tokenizer.ggml.token_type`. */
const CONTROL = 3;
const USER_DEFINED = 4;

/** Reads the header alone; the model is not loaded. Throws, in words, where the file is none. */
export function readGguf(path: string): Gguf {
  const file = openSync(path, 'r');
  try {
    return read(new Reader(file));
  } finally {
    closeSync(file);
  }
}

export function isGguf(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(MAGIC.length);
    return readSync(file, head, 0, head.length, 0) === head.length && head.toString('latin1') === MAGIC;
  } finally {
    closeSync(file);
  }
}

function read(reader: Reader): Gguf {
  if (reader.bytes(4).toString('latin1') !== MAGIC) throw new Error('it is no GGUF file');
  const version = reader.u32();
  if (version !== 2 && version !== 3) throw new Error(`GGUF of version ${version} is not known`);
  reader.length(); // tensors, which follow the header
  const found = new Map<string, unknown>();
  for (let left = reader.length(); left > 0; left--) {
    const key = reader.string();
    found.set(key, reader.value(reader.u32()));
  }
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

/** Reads a header piece by piece, as far as it goes. Numbers are little-endian. */
class Reader {
  readonly #file: number;
  #buffer = Buffer.alloc(0);
  #at = 0;
  #read = 0;

  constructor(file: number) {
    this.#file = file;
  }

  bytes(count: number): Buffer {
    if (this.#at + count > this.#buffer.length) this.#fill(count);
    const bytes = this.#buffer.subarray(this.#at, this.#at + count);
    this.#at += count;
    return bytes;
  }

  u32(): number {
    return this.bytes(4).readUInt32LE();
  }

  length(): number {
    const length = Number(this.bytes(8).readBigUInt64LE());
    if (length > HEADER_BYTES_MAX) throw new Error('its header is broken');
    return length;
  }

  string(): string {
    return this.bytes(this.length()).toString('utf8');
  }

  value(type: number): unknown {
    if (type === STRING) return this.string();
    if (type === ARRAY) return this.#list();
    const scalar = SCALARS[type];
    if (!scalar) throw new Error(`its header has a value of type ${type}, which is not known`);
    return scalar.read(this.bytes(scalar.size));
  }

  #list(): unknown[] {
    const type = this.u32();
    const values: unknown[] = [];
    for (let left = this.length(); left > 0; left--) values.push(this.value(type));
    return values;
  }

  #fill(count: number): void {
    const rest = this.#buffer.subarray(this.#at);
    const wanted = Math.max(CHUNK_BYTES, count - rest.length);
    if (this.#read + wanted > HEADER_BYTES_MAX) throw new Error('its header is too long');
    const more = Buffer.alloc(wanted);
    const got = readSync(this.#file, more, 0, wanted, this.#read);
    this.#read += got;
    this.#buffer = Buffer.concat([rest, more.subarray(0, got)]);
    this.#at = 0;
    if (this.#buffer.length < count) throw new Error('its header ends too early');
  }
}
