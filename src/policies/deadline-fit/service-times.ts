/** Weight of a new sample that took longer, or less long, than expected: it is followed up faster than down. */
const WEIGHT_UP = 0.2;
const WEIGHT_DOWN = 0.1;
const SPREAD_WEIGHT = 0.1;
/** Mean distances above what is expected that hardly any answer goes beyond. */
const SAFE_SPREADS = 3;
/** Samples of one size from which they stand alone; before that, all sizes of the kind do. */
const SAMPLES_MIN = 3;
/** What was learned so long ago is not gone by any more. */
const STALE_MS = 30_000;
const SIZES = 16;

class Expected {
  samples = 0;
  levelMs = 0;
  spreadMs = 0;
  at = 0;

  add(ms: number, now: number): void {
    const off = ms - this.levelMs;
    const weight = Math.max(1 / ++this.samples, off > 0 ? WEIGHT_UP : WEIGHT_DOWN);
    this.levelMs += weight * off;
    if (this.samples > 1)
      this.spreadMs += Math.max(1 / this.samples, SPREAD_WEIGHT) * (Math.abs(off) - this.spreadMs);
    this.at = now;
  }
}

export interface ServiceTime {
  /** What is expected; what it may well be; what it hardly ever is more than. Milliseconds. */
  levelMs: number;
  likelyMs: number;
  safeMs: number;
}

const UNKNOWN: ServiceTime = { levelMs: 0, likelyMs: 0, safeMs: 0 };

/**
 * How long a backend takes from being sent a request to what its deadline is about: the first content of a stream, the end
 * of any other answer. By kind, and by size in steps of four times.
 */
export class ServiceTimes {
  readonly #kinds = new Map<string, { all: Expected; sizes: (Expected | undefined)[] }>();

  /** `kind`: from a small, fixed set. `size`: tokens that the time hangs on. */
  observe(kind: string, size: number, ms: number, now: number): void {
    let known = this.#kinds.get(kind);
    if (!known) {
      known = { all: new Expected(), sizes: new Array(SIZES).fill(undefined) };
      this.#kinds.set(kind, known);
    }
    known.all.add(ms, now);
    const at = stepOf(size);
    known.sizes[at] ??= new Expected();
    known.sizes[at].add(ms, now);
  }

  /** Nothing known counts as no time at all. */
  expected(kind: string, size: number, now: number): ServiceTime {
    const known = this.#kinds.get(kind);
    if (!known) return UNKNOWN;
    const sized = known.sizes[stepOf(size)];
    const good = sized && sized.samples >= SAMPLES_MIN && now - sized.at < STALE_MS ? sized : known.all;
    if (now - good.at >= STALE_MS) return UNKNOWN;
    const { levelMs, spreadMs } = good;
    return { levelMs, likelyMs: levelMs + spreadMs, safeMs: levelMs + SAFE_SPREADS * spreadMs };
  }
}

function stepOf(size: number): number {
  return Math.min(SIZES - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, size)) / 2)));
}
