import type { LimitController, LimitSample } from '../limit-contract.ts';
import { FirstTokens } from './first-tokens.ts';
import { Side, spreadOf, waitsOf } from './side.ts';
import { WholeAnswers } from './whole-answers.ts';

/** Answers under a binding limit that an epoch is judged on: while it grows fast, and afterwards. */
const SAMPLES_START = 8;
const SAMPLES = 16;
const SAMPLES_MIN = 6;
/** Requests below which nothing brings the limit but the engine's own word. */
const REQUESTS_MIN = 2;
/** An epoch lasts no longer, so that what is compared is not hours apart. */
const EPOCH_MS_MAX = 120_000;
/** While it grows fast: by how much, and the share of what was added that only waits at which that ends. */
const GROWTH_START = 2;
const WAITS_START_MAX = 0.5;
const SPREAD_MIN = 0.1;
/** Streams: share of what is in flight that seems to wait at which it ends at once. */
const LONGER_START_MAX = 0.3;
/** A base is no higher than this, in multiples of what is in flight. */
const UNUSED_MAX = 1.6;
/**
 * Share of answers that come too late, and how many at least, at which the limit is cut. Whole answers are late for their
 * length too, which no limit helps.
 */
const LATE_SHARE_MAX = 0.1;
const LATE_SHARE_MAX_WHOLE = 0.25;
const LATE_MIN = 3;
const CUT_MIN = 0.05;
const CUT_MAX = 0.5;
/** For how long a limit at which answers came too late is remembered. */
const CEILING_MS = 10_000;
/** For how long the engine's own word is believed that nothing waits, and by how much each such word lets the limit grow. */
const FREE_MS = 3_000;
const FREE_GROWTH = 0.04;

/**
 * The fewest units in flight that give nearly all the throughput there is. It asks of every further unit whether it adds
 * throughput or only waits: a batch that grows slower is not congestion as long as more comes out of it.
 */
export class KneeLimit implements LimitController {
  readonly name = 'knee';
  readonly version = 1;
  starting = true;
  limit = 0;
  #base = 0;
  #ceiling = Number.POSITIVE_INFINITY;
  #ceilingAt = 0;
  #free = 0;
  #freeAt = Number.NEGATIVE_INFINITY;
  #epochAt = 0;
  #count = 0;
  #late = 0;
  #over = 0;
  readonly #epoch = new Side();
  /** What each answer of the epoch took longer than its size takes at least. */
  readonly #excesses = new Float64Array(SAMPLES);
  readonly #kept = new Side();
  readonly #firstTokens = new FirstTokens();
  readonly #wholeAnswers = new WholeAnswers();

  observe(sample: LimitSample, now: number): void {
    if (sample.sentAt < this.#epochAt) return;
    this.#count++;
    if (sample.share > 1) {
      this.#late++;
      this.#over += (sample.share - 1) * sample.allowedPart;
    }
    if (sample.saturated) {
      this.#excesses[this.#epoch.count % SAMPLES] = sample.excess;
      this.#epoch.add(sample);
    }
    const lateMax = (sample.whole ? LATE_SHARE_MAX_WHOLE : LATE_SHARE_MAX) * Math.max(this.#count, SAMPLES);
    if (this.#late >= LATE_MIN && this.#late >= lateMax) {
      this.#cut(Math.max(sample.inFlight, REQUESTS_MIN * sample.unit), this.#over / this.#late, now);
      this.limit = this.#base = Math.max(this.#base, REQUESTS_MIN * sample.unit);
    } else if (this.#epoch.count >= this.#samplesOf(sample)) {
      if (this.starting) this.#start(sample.whole, now);
      else this.#settle(sample, now);
    } else if (now - this.#epochAt > EPOCH_MS_MAX) this.#begin(now);
  }

  /** A small limit has not many answers: two for each place do. */
  #samplesOf({ inFlight, unit }: LimitSample): number {
    if (this.starting) return SAMPLES_START;
    return Math.max(SAMPLES_MIN, Math.min(SAMPLES, (2 * inFlight) / unit));
  }

  dropped(inFlight: number, part: number, now: number): void {
    // What is there is gone by, and not the limit: until it has shrunk to that, the same is said again.
    const rest = inFlight * (1 - part);
    const limit = this.starting ? rest : Math.min(this.limit, rest);
    this.#cut(inFlight, part, now);
    this.limit = this.#base = limit;
  }

  free(units: number, now: number): void {
    if (this.starting) return;
    this.#free = Math.min(units * (1 + FREE_GROWTH), this.#ceilingNow(now));
    this.#freeAt = now;
    this.#base = Math.max(this.#base, this.#free);
    this.limit = Math.max(this.limit, this.#base);
  }

  restart(units: number): void {
    this.starting = true;
    this.#base = this.limit = Math.min(this.limit, units);
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#kept.clear();
    this.#begin(this.#epochAt);
  }

  /** Doubles until what is added waits. */
  #start(whole: boolean, now: number): void {
    const [before, after] = [this.#kept, this.#epoch];
    const known = before.count > 0;
    const grown = known && spreadOf(before, after) > SPREAD_MIN;
    const longer = this.#longer();
    if (!whole && longer > LONGER_START_MAX) {
      this.#startEnds(after.inFlight * Math.max(0.5, 1 - longer));
    } else if (known && !grown) {
      // Something else holds it: the hard cap.
      this.#startEnds(after.inFlight);
    } else if (grown && waitsOf(before, after) > WAITS_START_MAX) {
      // What came at once is in it too, and of whole answers the batch: no lower than the middle is believed.
      const wait = whole ? 1 : Math.min(1, (after.excess - before.excess) / after.held);
      const middle = Math.sqrt(before.inFlight * after.inFlight);
      this.#startEnds(Math.max(middle, after.inFlight * (1 - wait)));
    } else {
      this.#base = this.limit = Math.min(after.inFlight * GROWTH_START, this.#ceilingNow(now));
      before.clear();
      before.addAll(after);
    }
    this.#begin(now);
  }

  /**
   * What an answer of the epoch took longer than its size takes at least, over the time for which a place is held. The median:
   * a queue that stands delays all of them, a pause of this process or the engine's a few.
   */
  #longer(): number {
    const count = Math.min(SAMPLES, this.#epoch.count);
    const sorted = this.#excesses.subarray(0, count).sort();
    return sorted[count >> 1]! / this.#epoch.held;
  }

  #startEnds(base: number): void {
    this.starting = false;
    this.#base = base;
    this.#forget();
  }

  #settle({ whole, unit, sentAt }: LimitSample, now: number): void {
    const next = whole
      ? this.#wholeAnswers.next(this.#base, this.#epoch)
      : this.#firstTokens.next(this.#base, this.#epoch, this.#kept, this.#longer());
    // Where the hard cap holds it there is no sense in going on without it.
    const most = UNUSED_MAX * this.#epoch.inFlight;
    const base = Math.min(next, most, Math.max(this.#base, this.#ceilingNow(now)));
    const free = now - this.#freeAt < FREE_MS ? this.#free : 0;
    this.#base = Math.max(base, free, REQUESTS_MIN * unit);
    const swing = whole ? this.#wholeAnswers.swing : -this.#firstTokens.dip;
    this.limit = this.#base * (1 + swing);
    // What comes in at once as the limit goes up makes all the others longer for a while: that is not looked at.
    this.#begin(whole ? now + (now - sentAt) : now);
  }

  #cut(inFlight: number, over: number, now: number): void {
    const from = this.starting ? inFlight : Math.min(this.limit, inFlight);
    this.#freeAt = Number.NEGATIVE_INFINITY;
    this.starting = false;
    this.#ceiling = from;
    this.#ceilingAt = now;
    this.#base = from * (1 - Math.max(CUT_MIN, Math.min(CUT_MAX, over)));
    this.#forget();
    this.#begin(now);
  }

  /** What it may grow to: a little less than what was too much a little while ago. */
  #ceilingNow(now: number): number {
    return now - this.#ceilingAt < CEILING_MS ? this.#ceiling * (1 - CUT_MIN) : Number.POSITIVE_INFINITY;
  }

  #forget(): void {
    this.#firstTokens.forget();
    this.#wholeAnswers.forget();
    this.limit = this.#base;
  }

  #begin(now: number): void {
    this.#epochAt = now;
    this.#count = this.#late = this.#over = 0;
    this.#epoch.clear();
  }
}
