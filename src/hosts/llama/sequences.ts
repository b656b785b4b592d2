import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { assert } from '../../kernel/assert.ts';

/**
 * The sequences of a context that no request holds. Each keeps the tokens of its last request, so that the next turn of
 * the same conversation need not read them again.
 */
export class Sequences {
  /** The one that was used longest ago first. */
  readonly #free: LlamaContextSequence[];
  readonly #all: readonly LlamaContextSequence[];

  constructor(sequences: readonly LlamaContextSequence[]) {
    this.#all = sequences;
    this.#free = [...sequences];
  }

  /** Tokens that running requests hold. */
  get tokensHeld(): number {
    let tokens = 0;
    for (const sequence of this.#all) {
      if (!this.#free.includes(sequence)) tokens += sequence.nextTokenIndex;
    }
    return tokens;
  }

  /** The free sequence that begins most like `prompt`; one is free whenever a place was taken before. */
  take(prompt: Token[]): LlamaContextSequence {
    let best = 0;
    let bestLength = -1;
    for (const [at, sequence] of this.#free.entries()) {
      const length = sequence.compareContextTokens(prompt).firstDifferentIndex;
      if (length > bestLength) {
        best = at;
        bestLength = length;
      }
    }
    const [sequence] = this.#free.splice(best, 1);
    assert(sequence, 'a place was taken, so a sequence is free');
    return sequence;
  }

  give(sequence: LlamaContextSequence): void {
    this.#free.push(sequence);
  }
}
