/** A text's tokens that wait to go upstream with others. */
export interface Waiting {
  readonly tokens: number;
  /** Monotonic: it has waited enough for others; and when it leaves even where no batch may. */
  readonly dueAt: number;
  readonly lastAt: number;
  /** Those with a lower turn leave first. */
  readonly turn: number;
}

export interface FormerSettings {
  /** Tokens of a batch, padding included. */
  batchTokensMax: number;
  rowsMax: number;
}

/** Lengths up to this are of one bucket; above it each bucket ends a fifth higher than the one before. */
const SHORTEST = 16;
const BUCKETS_PER_DOUBLING = 4;
/** What a batch that is filled up with other lengths may have of padding, in tokens for each token of a text. */
const PADDING_MAX = 0.25;

/**
 * Forms batches of texts of like length. A batch may leave when no more texts of its bucket fit, or when one of its texts is due:
 * then texts of the next buckets fill it up, as long as padding stays small. Pure: whoever uses it turns the clock.
 */
export class Former<Row extends Waiting> {
  readonly #settings: FormerSettings;
  /** By bucket, each in the order of turns. */
  readonly #buckets: Row[][] = [];
  #count = 0;

  constructor(settings: FormerSettings) {
    this.#settings = settings;
  }

  /** Texts that wait. */
  get count(): number {
    return this.#count;
  }

  /** When a batch leaves next: `free`: whether one may that need not. Infinity where none waits. */
  dueAt(free: boolean): number {
    let dueAt = Number.POSITIVE_INFINITY;
    for (const bucket of this.#buckets) {
      for (const row of bucket ?? []) dueAt = Math.min(dueAt, free ? row.dueAt : row.lastAt);
    }
    return dueAt;
  }

  add(row: Row): void {
    const bucket = (this.#buckets[bucketOf(row.tokens)] ??= []);
    let at = bucket.length;
    while (at > 0 && bucket[at - 1]!.turn > row.turn) at--;
    bucket.splice(at, 0, row);
    this.#count++;
  }

  /** The batch that leaves now, if one does: that with the lowest turn of those that are full or due. */
  next(now: number, free: boolean): Row[] | undefined {
    let chosen = -1;
    let turn = Number.POSITIVE_INFINITY;
    for (const [at, bucket] of this.#buckets.entries()) {
      const first = bucket?.[0];
      if (!first || first.turn >= turn) continue;
      const leaves = bucket.some((row) => now >= (free ? row.dueAt : row.lastAt));
      if (!leaves && !(free && this.#isFull(bucket))) continue;
      chosen = at;
      turn = first.turn;
    }
    return chosen < 0 ? undefined : this.#take(chosen);
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

  /** Whether another text like the longest would not fit any more. */
  #isFull(bucket: readonly Row[]): boolean {
    const longest = bucket.reduce((most, { tokens }) => Math.max(most, tokens), 0);
    return !this.#fits(longest, bucket.length + 1);
  }

  /** Texts of a bucket, and of its neighbours where there is room, the nearest first. */
  #take(at: number): Row[] {
    const batch: Row[] = [];
    let longest = 0;
    let sum = 0;
    const takeFrom = (bucket: Row[] | undefined, paddingMax: number): void => {
      for (let index = 0; bucket && index < bucket.length; ) {
        const { tokens } = bucket[index]!;
        const length = Math.max(longest, tokens);
        const rows = batch.length + 1;
        if (!this.#fits(length, rows) && batch.length > 0) return;
        if (length * rows > (sum + tokens) * (1 + paddingMax)) index++;
        else {
          longest = length;
          sum += tokens;
          batch.push(...bucket.splice(index, 1));
          this.#count--;
        }
      }
    };
    takeFrom(this.#buckets[at], Number.POSITIVE_INFINITY);
    for (let step = 1; step < this.#buckets.length; step++) {
      takeFrom(this.#buckets[at - step], PADDING_MAX);
      takeFrom(this.#buckets[at + step], PADDING_MAX);
    }
    return batch;
  }
}

function bucketOf(tokens: number): number {
  return tokens <= SHORTEST ? 0 : Math.ceil(Math.log2(tokens / SHORTEST) * BUCKETS_PER_DOUBLING);
}
