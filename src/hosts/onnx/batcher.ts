import { tooBusy } from '../fault.ts';

/** Texts that are computed together; more gain nothing on a processor. */
const ROWS_MAX = 32;
/** The longest row of a batch is at most so many times its shortest, so that little is spent on padding. */
const LENGTH_RATIO_MAX = 2;
/** Texts that may wait. */
const WAITING_MAX = 8192;

type Compute = (rows: number[][]) => Promise<Float32Array[]>;

/** One caller's rows. */
interface Ask {
  rows: number[][];
  vectors: Float32Array[];
  gone: AbortSignal;
  /** The row whose turn is next; all are taken when it is their number. */
  next: number;
  /** Rows without a vector. */
  left: number;
  resolve(vectors: Float32Array[] | undefined): void;
  reject(error: unknown): void;
}

type Place = { ask: Ask; at: number };

/**
 * Computes rows of several callers together: what has come while one batch ran makes the next. Callers take turns row by
 * row, so that a long list holds up nobody. Each gets its own rows and its own failure; rows of a caller that has left
 * are dropped.
 */
export class Batcher {
  readonly #compute: Compute;
  readonly #tokensMax: number;
  /** Asks with rows that wait, in the order of their turns. */
  #queue: Ask[] = [];
  #waiting = 0;
  #running = 0;

  /** `tokensMax`: tokens of a batch, padding included, so that memory stays bounded whatever the lengths. */
  constructor(compute: Compute, tokensMax: number) {
    this.#compute = compute;
    this.#tokensMax = tokensMax;
  }

  /** Rows that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Rows of the batch that is being computed. */
  get running(): number {
    return this.#running;
  }

  /** Gives a vector for each row, or undefined when the caller left meanwhile. */
  async embed(rows: number[][], gone: AbortSignal): Promise<Float32Array[] | undefined> {
    if (this.#waiting + rows.length > WAITING_MAX) throw tooBusy(WAITING_MAX);
    return new Promise((resolve, reject) => {
      this.#queue.push({ rows, vectors: [], gone, next: 0, left: rows.length, resolve, reject });
      this.#waiting += rows.length;
      if (this.#running === 0) void this.#work();
    });
  }

  async #work(): Promise<void> {
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) {
      this.#running = batch.length;
      try {
        await this.#computeBatch(batch);
      } catch (error) {
        if (batch.length === 1) this.#fail(batch[0]!.ask, error);
        else await this.#computeApart(batch);
      }
      this.#running = 0;
    }
  }

  async #computeBatch(batch: readonly Place[]): Promise<void> {
    const vectors = await this.#compute(batch.map(({ ask, at }) => ask.rows[at]!));
    for (const [index, { ask, at }] of batch.entries()) {
      ask.vectors[at] = vectors[index]!;
      if (--ask.left === 0) ask.resolve(ask.vectors);
    }
  }

  /** One of them made the batch fail: alone, each has its own fate. */
  async #computeApart(batch: readonly Place[]): Promise<void> {
    for (const place of batch) {
      try {
        await this.#computeBatch([place]);
      } catch (error) {
        this.#fail(place.ask, error);
      }
    }
  }

  #fail(ask: Ask, error: unknown): void {
    ask.reject(error);
    this.#drop(ask);
  }

  /** Forgets what waits of an ask. */
  #drop(ask: Ask): void {
    this.#waiting -= ask.rows.length - ask.next;
    ask.next = ask.rows.length;
    this.#queue = this.#queue.filter((other) => other !== ask);
  }

  /** The rows of the next batch: one of each ask in turn, as long as they are alike in length and there is room. */
  #take(): Place[] {
    for (const ask of this.#queue.filter(({ gone }) => gone.aborted)) {
      ask.resolve(undefined);
      this.#drop(ask);
    }
    const batch: Place[] = [];
    const lengths: number[] = [];
    for (let took = true; took; ) {
      took = false;
      for (const ask of this.#queue) {
        const row = ask.rows[ask.next];
        if (!row || !fits(lengths, row.length, this.#tokensMax)) continue;
        lengths.push(row.length);
        batch.push({ ask, at: ask.next++ });
        took = true;
      }
    }
    this.#waiting -= batch.length;
    // Those that had no turn are first next time.
    const had = new Set(batch.map(({ ask }) => ask));
    const waiting = this.#queue.filter(({ next, rows }) => next < rows.length);
    this.#queue = [...waiting.filter((ask) => !had.has(ask)), ...waiting.filter((ask) => had.has(ask))];
    return batch;
  }
}

/** Whether a row of this length may join rows of those lengths. */
function fits(lengths: readonly number[], length: number, tokensMax: number): boolean {
  if (lengths.length === 0) return true;
  const longest = Math.max(...lengths, length);
  const shortest = Math.min(...lengths, length);
  return (
    lengths.length < ROWS_MAX &&
    longest <= LENGTH_RATIO_MAX * shortest &&
    longest * (lengths.length + 1) <= tokensMax
  );
}
