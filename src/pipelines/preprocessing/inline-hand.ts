import type { Timers } from '../../kernel/timers.ts';
import type { Chunk, ChunkDone, ChunkFailed, Hand } from './crew.ts';
import { ChunkTokenizer } from './tokenize-chunk.ts';
import type { OpenTokenizer } from './tokenizer.ts';

/** Works in place, and says so later: for tests and simulations in virtual time. */
export class InlineHand implements Hand {
  readonly #timers: Timers;
  readonly #tokenizer: ChunkTokenizer;
  readonly #msPerText: number;
  #closed = false;
  /** What it still owes, in milliseconds of work. */
  #owedMs = 0;

  constructor(timers: Timers, open: (path: string) => OpenTokenizer, msPerText = 0) {
    this.#timers = timers;
    this.#tokenizer = new ChunkTokenizer(open);
    this.#msPerText = msPerText;
  }

  work(chunk: Chunk, done: (result: ChunkDone | ChunkFailed) => void): void {
    const result = this.#tokenizer.tokenize(chunk);
    const ms = this.#msPerText * chunk.texts.length;
    this.#owedMs += ms;
    this.#timers.set(this.#owedMs, () => {
      this.#owedMs -= ms;
      if (!this.#closed) done(result);
    });
  }

  close(): void {
    this.#closed = true;
  }
}
