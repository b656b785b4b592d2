/** Some texts of one ask, as they go to whoever works on them. */
export interface Chunk {
  /** Key and path of the tokenizer. */
  tokenizer: { key: string; path: string };
  texts: readonly string[];
  specials: boolean;
  want: 'ids' | 'counts';
  cutAt: number | undefined;
}

/** Tokens of each text; their ids one after the other, empty where only counts were wanted. */
export interface ChunkDone {
  counts: Uint32Array;
  ids: Int32Array;
}

/** `died`: who worked on it is no more; `unreadable`: the tokenizer cannot be read; `failed`: it could not be done. */
export interface ChunkFailed {
  failed: 'died' | 'unreadable' | 'failed';
  message: string;
}

/** One who works on chunks, in the order in which they come. */
export interface Hand {
  /** Calls back once, never before it has returned. */
  work(chunk: Chunk, done: (result: ChunkDone | ChunkFailed) => void): void;
  /** What it works on is not called back any more. */
  close(): void;
}
