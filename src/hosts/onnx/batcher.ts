import { tooBusy } from '../fault.ts';

/** Texts that are computed together; more gain nothing on a processor. */
const ROWS_MAX = 32;
/** Tokens of a batch, padding included, so that memory stays bounded whatever the lengths. */
const BATCH_TOKENS_MAX = 8192;
/** Texts that may wait. */
const WAITING_MAX = 8192;

interface Waiting {
  row: number[];
  gone: AbortSignal;
  resolve(vector: Float32Array | undefined): void;
  reject(error: unknown): void;
}

/**
 * Computes rows of several callers together: what has come while one batch ran makes the next. Each caller gets its
 * own rows and its own failure; rows whose caller has left are dropped.
 */
export class Batcher {
  readonly #compute: (rows: number[][]) => Promise<Float32Array[]>;
  #waiting: Waiting[] = [];
  #running = 0;

  constructor(compute: (rows: number[][]) => Promise<Float32Array[]>) {
    this.#compute = compute;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get running(): number {
    return this.#running;
  }

  /** Gives a vector for each row, or undefined when the caller left meanwhile. */
  async embed(rows: number[][], gone: AbortSignal): Promise<Float32Array[] | undefined> {
    if (this.#waiting.length + rows.length > WAITING_MAX) throw tooBusy(WAITING_MAX);
    const vectors = Promise.all(
      rows.map(
        (row) =>
          new Promise<Float32Array | undefined>((resolve, reject) => {
            this.#waiting.push({ row, gone, resolve, reject });
          }),
      ),
    );
    if (this.#running === 0) void this.#work();
    const made = await vectors;
    return made.every((vector) => vector !== undefined) ? made : undefined;
  }

  async #work(): Promise<void> {
    for (let batch = this.#next(); batch.length > 0; batch = this.#next()) {
      this.#running = batch.length;
      try {
        const vectors = await this.#compute(batch.map(({ row }) => row));
        for (const [at, { resolve }] of batch.entries()) resolve(vectors[at]);
      } catch (error) {
        if (batch.length === 1) batch[0]!.reject(error);
        else await this.#computeApart(batch);
      }
      this.#running = 0;
    }
  }

  /** One of them made the batch fail: alone, each has its own fate. */
  async #computeApart(batch: readonly Waiting[]): Promise<void> {
    for (const { row, resolve, reject } of batch) {
      try {
        resolve((await this.#compute([row]))[0]);
      } catch (error) {
        reject(error);
      }
    }
  }

  #next(): Waiting[] {
    const batch: Waiting[] = [];
    let longest = 0;
    let taken = 0;
    for (const item of this.#waiting) {
      if (item.gone.aborted) {
        item.resolve(undefined);
      } else {
        longest = Math.max(longest, item.row.length);
        if (
          batch.length > 0 &&
          (batch.length === ROWS_MAX || longest * (batch.length + 1) > BATCH_TOKENS_MAX)
        )
          break;
        batch.push(item);
      }
      taken++;
    }
    this.#waiting.splice(0, taken);
    return batch;
  }
}
