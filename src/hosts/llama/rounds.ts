interface Comer {
  reads: boolean;
  begin: (tokens: number) => void;
}

/**
 * Brings what several sequences have to compute into rounds: nobody begins while others are at it, and whoever has come
 * meanwhile begins at once with all the others. Left to themselves two sequences fall out of step: each finds the other's
 * batch under way, so that none is ever computed together; and since llama.cpp's queue is then never empty, whoever must
 * first change the context, as each new prompt must, waits until one of them has ended.
 */
export class Rounds {
  readonly #batchTokens: number;
  readonly #waiting: Comer[] = [];
  #computing = 0;
  #called = false;

  /** `batchTokens` is what one round takes together. */
  constructor(batchTokens: number) {
    this.#batchTokens = batchTokens;
  }

  /** One piece of a prompt: `compute` is told how many tokens of it have room in the round. */
  read<T>(compute: (tokens: number) => Promise<T>): Promise<T> {
    return this.#take(true, compute);
  }

  /** The same tokens, each drawn in a round. */
  async *draw<T>(tokens: AsyncIterator<T, unknown, void>): AsyncGenerator<T, void, void> {
    try {
      for (;;) {
        const step = await this.#take(false, () => tokens.next());
        if (step.done) return;
        yield step.value;
      }
    } finally {
      await tokens.return?.();
    }
  }

  async #take<T>(reads: boolean, compute: (tokens: number) => Promise<T>): Promise<T> {
    const tokens = await new Promise<number>((begin) => {
      this.#waiting.push({ reads, begin });
      this.#call();
    });
    try {
      return await compute(tokens);
    } finally {
      this.#computing--;
      this.#call();
    }
  }

  #call(): void {
    if (this.#called || this.#computing > 0 || this.#waiting.length === 0) return;
    this.#called = true;
    // A turn later, so that those whose round has just ended come to the next one, and a token was sent on before.
    setImmediate(() =>
      setImmediate(() => {
        this.#called = false;
        this.#begin();
      }),
    );
  }

  #begin(): void {
    const comers = this.#waiting.splice(0);
    const readers = comers.filter(({ reads }) => reads).length;
    const room = Math.floor((this.#batchTokens - (comers.length - readers)) / Math.max(1, readers));
    this.#computing = comers.length;
    for (const { begin } of comers) begin(Math.max(1, room));
  }
}
