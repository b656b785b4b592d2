import { LRUCache } from 'lru-cache';
import type { Chunk, ChunkDone, ChunkFailed } from './crew.ts';
import type { OpenTokenizer } from './tokenizer.ts';

/** Tokenizers that one thread keeps open; the one that was used longest ago makes room. */
const OPEN_MAX = 16;

/** Works on chunks, one at once: in a thread, or in place in a simulation. */
export class ChunkTokenizer {
  readonly #open: (path: string) => OpenTokenizer;
  readonly #tokenizers = new LRUCache<string, OpenTokenizer>({ max: OPEN_MAX });

  constructor(open: (path: string) => OpenTokenizer) {
    this.#open = open;
  }

  tokenize({ tokenizer, texts, specials, want, cutAt }: Chunk): ChunkDone | ChunkFailed {
    let opened: OpenTokenizer;
    try {
      opened = this.#tokenizer(tokenizer.key, tokenizer.path);
    } catch (error) {
      return { failed: 'unreadable', message: (error as Error).message };
    }
    try {
      const rows = texts.map((text) => opened.encode(text, specials, cutAt));
      const counts = Uint32Array.from(rows, (row) => row.length);
      if (want === 'counts') return { counts, ids: new Int32Array(0) };
      const ids = new Int32Array(counts.reduce((sum, count) => sum + count, 0));
      let at = 0;
      for (const row of rows) {
        ids.set(row, at);
        at += row.length;
      }
      return { counts, ids };
    } catch (error) {
      return { failed: 'failed', message: (error as Error).message };
    }
  }

  #tokenizer(key: string, path: string): OpenTokenizer {
    const known = this.#tokenizers.get(key);
    if (known) return known;
    const opened = this.#open(path);
    this.#tokenizers.set(key, opened);
    return opened;
  }
}
