/** A text's tokens that wait to go upstream with others. */
export interface Waiting {
  readonly tokens: number;
  /** Monotonic: it leaves by then. */
  readonly dueAt: number;
}

export interface FormerSettings {
  /** Tokens of a batch, padding included. */
  batchTokensMax: number;
  rowsMax: number;
}

/** Lengths up to this are of one bucket; above it each bucket ends a fifth higher than the one before. */
const SHORTEST = 16;
const BUCKETS_PER_DOUBLING = 4;
/** What a batch that leaves early may have of padding, in tokens for each token of a text. */
const PADDING_MAX = 0.25;

/**
 * Forms batches of texts of like length. A batch leaves when no more text of its bucket fits, or when one of its texts is due:
 * then texts of the next buckets fill it up, as long as padding stays small. Pure: whoever uses it turns the clock.
 */
export class Former<Row extends Waiting> {
  readonly #settings: FormerSettings;
  /** By bucket, each in order of arrival. */
  readonly #buckets: Row[][] = [];
  #count = 0;

  constructor(settings: FormerSettings) {
    this.#settings = settings;
  }

  /** Texts that wait. */
  get count(): number {
    return this.#count;
  }

  /** When the first of them is due; Infinity where none waits. */
  get dueAt(): number {
    let dueAt = Number.POSITIVE_INFINITY;
    for (const bucket of this.#buckets) {
      for (const row of bucket ?? []) if (row.dueAt < dueAt) dueAt = row.dueAt;
    }
    return dueAt;
  }

  /** Takes a text; gives the batch that is full by it, if one is. */
  add(row: Row): Row[] | undefined {
    const at = bucketOf(row.tokens);
    const bucket = (this.#buckets[at] ??= []);
    bucket.push(row);
    this.#count++;
    const longest = Math.max(...bucket.map(({ tokens }) => tokens));
    const full = this.#fits(longest, bucket.length) && !this.#fits(longest, bucket.length + 1);
    if (full) return this.#take(at, bucket.length);
    if (this.#fits(longest, bucket.length)) return undefined;
    // It came one text too long: those before it leave without it.
    return bucket.length === 1 ? this.#take(at, 1) : this.#take(at, bucket.length - 1);
  }

  /** The batch with the text that is due first, filled up; undefined where none is due. */
  due(now: number): Row[] | undefined {
    let first = -1;
    let dueAt = now;
    for (const [at, bucket] of this.#buckets.entries()) {
      for (const row of bucket ?? []) {
        if (row.dueAt > dueAt) continue;
        dueAt = row.dueAt;
        first = at;
      }
    }
    return first < 0 ? undefined : this.#filled(first);
  }

  /** Those that nobody wants any more. */
  remove(isUnwanted: (row: Row) => boolean): void {
    for (const [at, bucket] of this.#buckets.entries()) {
      if (!bucket) continue;
      const kept = bucket.filter((row) => !isUnwanted(row));
      this.#count -= bucket.length - kept.length;
      this.#buckets[at] = kept;
    }
  }

  #fits(longest: number, rows: number): boolean {
    const { batchTokensMax, rowsMax } = this.#settings;
    return rows <= rowsMax && longest * rows <= batchTokensMax;
  }

  #take(at: number, count: number): Row[] {
    this.#count -= count;
    return this.#buckets[at]!.splice(0, count);
  }

  /** The texts of a bucket, and of its neighbours, the nearest first. */
  #filled(at: number): Row[] {
    const batch = this.#take(at, this.#buckets[at]!.length);
    let longest = Math.max(...batch.map(({ tokens }) => tokens));
    let sum = batch.reduce((total, { tokens }) => total + tokens, 0);
    for (let step = 1; step < this.#buckets.length; step++) {
      for (const neighbour of [at - step, at + step]) {
        const bucket = this.#buckets[neighbour];
        for (let index = 0; bucket && index < bucket.length; ) {
          const { tokens } = bucket[index]!;
          const length = Math.max(longest, tokens);
          const padded = length * (batch.length + 1);
          if (!this.#fits(length, batch.length + 1) || padded > (sum + tokens) * (1 + PADDING_MAX)) {
            index++;
            continue;
          }
          longest = length;
          sum += tokens;
          batch.push(...bucket.splice(index, 1));
          this.#count--;
        }
      }
    }
    return batch;
  }
}

function bucketOf(tokens: number): number {
  return tokens <= SHORTEST ? 0 : Math.ceil(Math.log2(tokens / SHORTEST) * BUCKETS_PER_DOUBLING);
}
