/** Weight of a new sample that took longer, or less long, than expected: it is followed up faster than down. */
const WEIGHT_UP = 0.2;
const WEIGHT_DOWN = 0.1;
const SPREAD_WEIGHT = 0.1;
/** Mean distances above what is expected: hardly any answer takes longer. */
const SAFE_SPREADS = 3;
/** The longest of one to two generations of samples is hardly gone beyond: so many of them, within these times. */
const GENERATION = 64;
const GENERATION_MS_MIN = 2_000;
const GENERATION_MS_MAX = 10_000;
/** Samples of one size from which they stand alone; before that, all sizes of the kind do. */
const SAMPLES_MIN = 3;
/** What was learned so long ago is not gone by any more. */
const STALE_MS = 30_000;
const SIZES = 24;

class Expected {
  samples = 0;
  levelMs = 0;
  spreadMs = 0;
  at = 0;
  /** The longest of this generation of samples, and of the one before. */
  #peakMs = 0;
  #peakBeforeMs = 0;
  #inGeneration = 0;
  #generationAt = 0;

  get peakMs(): number {
    return Math.max(this.#peakMs, this.#peakBeforeMs);
  }

  add(ms: number, now: number): void {
    const off = ms - this.levelMs;
    const weight = Math.max(1 / ++this.samples, off > 0 ? WEIGHT_UP : WEIGHT_DOWN);
    this.levelMs += weight * off;
    if (this.samples > 1)
      this.spreadMs += Math.max(1 / this.samples, SPREAD_WEIGHT) * (Math.abs(off) - this.spreadMs);
    this.at = now;
    this.#turnOver(now);
    this.#peakMs = Math.max(this.#peakMs, ms);
  }

  #turnOver(now: number): void {
    const passedMs = now - this.#generationAt;
    this.#inGeneration++;
    if (passedMs < GENERATION_MS_MIN || (this.#inGeneration <= GENERATION && passedMs < GENERATION_MS_MAX))
      return;
    this.#peakBeforeMs = this.#peakMs;
    this.#peakMs = 0;
    this.#inGeneration = 1;
    this.#generationAt = now;
  }
}

/** What was learned of one kind of requests: of all, and of each size. */
interface Kind {
  all: Expected;
  sizes: (Expected | undefined)[];
}

export interface ServiceTime {
  /** What is expected, the mean distance to that, and what it hardly ever is more than. Milliseconds. */
  levelMs: number;
  spreadMs: number;
  safeMs: number;
}

const UNKNOWN: ServiceTime = { levelMs: 0, spreadMs: 0, safeMs: 0 };

/**
 * How long a backend takes from being sent a request to what its deadline is about: the first content of a stream, the end
 * of any other answer. By kind, and by size in steps of two times.
 */
export class ServiceTimes {
  readonly #kinds = new Map<string, Kind>();

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

  /** It was broken off after so long: it would have taken longer, which counts where that is more than was expected. */
  atLeast(kind: string, size: number, ms: number, now: number): void {
    if (ms > this.expected(kind, size, now).levelMs) this.observe(kind, size, ms, now);
  }

  /** Nothing known counts as no time at all. */
  expected(kind: string, size: number, now: number): ServiceTime {
    const known = this.#kinds.get(kind);
    if (!known) return UNKNOWN;
    const good = this.#nearest(known, stepOf(size), now);
    if (now - good.at >= STALE_MS) return UNKNOWN;
    const { levelMs, spreadMs, peakMs } = good;
    const safeMs = Math.max(peakMs, levelMs + SAFE_SPREADS * spreadMs);
    return { levelMs, spreadMs, safeMs };
  }

  /** Where nothing is known of this size it takes no less than the next smaller of which something is, and no more than the next larger. */
  #nearest({ all, sizes }: Kind, step: number, now: number): Expected {
    const isKnown = (sized: Expected | undefined): sized is Expected =>
      sized !== undefined && sized.samples >= SAMPLES_MIN && now - sized.at < STALE_MS;
    const own = sizes[step];
    if (isKnown(own)) return own;
    const smaller = sizes.findLast((sized, at) => at < step && isKnown(sized));
    if (smaller && smaller.levelMs > all.levelMs) return smaller;
    const larger = sizes.find((sized, at) => at > step && isKnown(sized));
    return larger && larger.levelMs < all.levelMs ? larger : all;
  }
}

function stepOf(size: number): number {
  return Math.min(SIZES - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, size)))));
}
