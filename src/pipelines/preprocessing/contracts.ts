/** Work on texts that is done apart from the request path and from the models: in threads of its own. */

/** A tokenizer by its file; each thread reads it once. */
export interface TokenizerFile {
  /** The same key always means the same file. */
  key: string;
  /** Absolute path of a `tokenizer.json`. */
  path: string;
}

export interface TokenizeAsk {
  tokenizer: TokenizerFile;
  texts: readonly string[];
  /** Whether the tokens that the tokenizer puts around a text of its own are added; those written in a text count either way. */
  specials: boolean;
  /** `counts`: only how many there are comes back, which is cheaper. */
  want: 'ids' | 'counts';
  /** Texts with more tokens are cut at their end, and keep what is put around them; undefined: they are left whole. */
  cutAt?: number | undefined;
  /** Place of the asker's priority, 0 the highest. */
  rank: number;
  /** Monotonic milliseconds: what has not been begun by then is not done. */
  deadlineAt: number;
}

/** For each text, in order. */
export interface Tokenized {
  counts: readonly number[];
  /** Where `ids` were wanted. */
  ids: readonly Int32Array[];
}

export interface TokenizeFailure {
  /** `full`: too much waits already; `late`: its deadline passed; `unreadable`: there is no such tokenizer; `broken`: the work failed, twice. */
  failed: 'full' | 'late' | 'unreadable' | 'broken';
  message: string;
}

/** Threads that make tokens of texts, what waits for them bounded. */
export interface TokenizerPool {
  /**
   * Calls back once, never before it has returned, and not at all once the returned function, which gives the work up, was
   * called. Texts of one ask are worked on by several threads where there are many.
   */
  tokenize(ask: TokenizeAsk, done: (result: Tokenized | TokenizeFailure) => void): () => void;
  /** Texts that wait; and those that are being worked on. */
  readonly waiting: number;
  readonly running: number;
}

/** Finds the tokenizers of `models`. */
export interface TokenizerFiles {
  /** The tokenizer of a model under `models`; undefined while it is being fetched, or where the model has none that is known. */
  ofModel(model: string): TokenizerFile | undefined;
  /** The tokenizer in a file of the configuration's; undefined where there is no such file. */
  ofFile(path: string): TokenizerFile | undefined;
}
