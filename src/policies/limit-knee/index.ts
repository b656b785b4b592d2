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
/** And no shorter, in parts of the time of an answer: answers of one moment were in one batch, and tell one thing. */
const EPOCH_OF_ANSWER = 0.5;
const EPOCH_OF_STREAM = 0.25;
/** The median of first tokens is taken over so many at most. */
const EXCESSES = 64;
/** While it grows fast: by how much, and the share of what was added that only waits at which that ends. */
const GROWTH_START = 2;
const WAITS_START_MAX = 0.5;
const SPREAD_MIN = 0.1;
/** Streams: share of what is in flight that seems to wait at which it ends at once. */
const LONGER_START_MAX = 0.2;
/** A base is no higher than this, in multiples of what is in flight. */
const UNUSED_MAX = 1.6;
/** Below this share of the limit something else holds what is in flight: the hard cap. */
const CAPPED = 0.9;
/**
 * While it does not bind, what is above all that was found to be too much is no higher than this, in multiples of the most
 * that was in flight of late; that fades with this time constant.
 */
const UNPROVEN_MAX = 1.1;
const USED_MS = 15_000;
/** Answers under a limit that does not bind that are remembered, to hold against the first that are. */
const UNBOUND_MAX = 64;
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
/** For how long the engine's own word is believed that hardly anything waits, and by how much it lets the limit grow at most. */
const FREE_MS = 3_000;
const FREE_GROWTH = 0.04;

/**
 * The fewest units in flight that give nearly all the throughput there is. It asks of every further unit whether it adds
 * throughput or only waits: a batch that grows slower is not congestion as long as more comes out of it.
 */
export class KneeLimit implements LimitController {
  readonly name = 'knee';
  readonly version = 3;
  starting = true;
  limit = 0;
  #base = 0;
  #ceiling = Number.POSITIVE_INFINITY;
  #ceilingAt = 0;
  #free = 0;
  #freeAt = Number.NEGATIVE_INFINITY;
  /** Where more was last seen only to wait; 0 where that was never seen. */
  #found = 0;
  /** The most that was in flight of late. */
  #used = 0;
  #usedAt = 0;
  #epochAt = 0;
  #firstAt = 0;
  #count = 0;
  #late = 0;
  #over = 0;
  readonly #epoch = new Side();
  /** What each answer of the epoch took longer than its size takes at least. */
  readonly #excesses = new Float64Array(EXCESSES);
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
      if (this.#epoch.count === 0) this.#firstAt = now;
      this.#excesses[this.#epoch.count % EXCESSES] = sample.excess;
      this.#epoch.add(sample);
    } else this.#unbound(sample, now);
    const lateMax = (sample.whole ? LATE_SHARE_MAX_WHOLE : LATE_SHARE_MAX) * Math.max(this.#count, SAMPLES);
    if (this.#late >= LATE_MIN && this.#late >= lateMax) {
      this.#cut(Math.max(sample.inFlight, REQUESTS_MIN * sample.unit), this.#over / this.#late, now);
      this.limit = this.#base = Math.max(this.#base, REQUESTS_MIN * sample.unit);
    } else if (
      this.#epoch.count >= this.#samplesOf(sample) &&
      now >= this.#firstAt + this.#lasts(sample, now)
    ) {
      if (this.starting) this.#start(sample.whole, now);
      else this.#settle(sample, now);
    } else if (now - this.#epochAt > EPOCH_MS_MAX) this.#begin(now);
  }

  /** It does not bind: it comes down to what was in use, so that a flood does not find room that nobody has tried. */
  #unbound(sample: LimitSample, now: number): void {
    this.#using(sample.inFlight, now);
    const most = Math.max(UNPROVEN_MAX * this.#used, this.#found, REQUESTS_MIN * sample.unit);
    if (this.#base > most) {
      this.#base = most;
      this.limit = Math.min(this.limit, most);
      // What was learned under a wider one, and how fast it grew, is of no use for what comes.
      this.#held();
      this.#wholeAnswers.forget();
    }
    if (!this.starting) return;
    if (this.#kept.count >= UNBOUND_MAX) this.#kept.scale(0.5);
    this.#kept.add(sample);
  }

  #using(units: number, now: number): void {
    this.#used = Math.max(units, this.#used * Math.max(0, 1 - (now - this.#usedAt) / USED_MS));
    this.#usedAt = now;
  }

  /** A small limit has not many answers: two for each place do. */
  #samplesOf({ inFlight, unit }: LimitSample): number {
    if (this.starting) return SAMPLES_START;
    return Math.max(SAMPLES_MIN, Math.min(SAMPLES, (2 * inFlight) / unit));
  }

  /** How long answers are taken in at least. */
  #lasts({ whole, sentAt, held }: LimitSample, now: number): number {
    if (this.starting) return 0;
    return whole ? (now - sentAt) * EPOCH_OF_ANSWER : held * EPOCH_OF_STREAM;
  }

  dropped(inFlight: number, part: number, now: number): void {
    // What is there is gone by, and not the limit: until it has shrunk to that, the same is said again.
    const rest = inFlight * (1 - part);
    const limit = this.starting ? rest : Math.min(this.limit, rest);
    this.#cut(inFlight, part, now);
    this.limit = this.#base = limit;
  }

  free(units: number, idle: number, now: number): void {
    if (this.starting) return;
    this.#free = Math.min(units * (1 + FREE_GROWTH * idle), this.#ceilingNow(now));
    this.#freeAt = now;
    this.#base = Math.max(this.#base, this.#free);
    this.limit = Math.max(this.limit, this.#base);
  }

  restart(units: number): void {
    this.starting = true;
    this.#base = this.limit = Math.min(this.limit, units);
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#found = 0;
    this.#kept.clear();
    this.#begin(this.#epochAt);
  }

  /** Doubles until what is added waits. */
  #start(whole: boolean, now: number): void {
    const [before, after] = [this.#kept, this.#epoch];
    const known = before.count >= SAMPLES_START;
    const grown = known && spreadOf(before, after) > SPREAD_MIN;
    const longer = this.#longer();
    if (!whole && longer > LONGER_START_MAX) {
      // What was there before had its first tokens in time: a moment in which all is busy does not undo that.
      const proven = known ? Math.min(before.inFlight, after.inFlight) : 0;
      this.#startEnds(Math.max(proven, after.inFlight * Math.max(0.5, 1 - longer)));
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
      this.#using(this.#base, now);
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
    const count = Math.min(EXCESSES, this.#epoch.count);
    const sorted = this.#excesses.subarray(0, count).sort();
    return sorted[count >> 1]! / this.#epoch.held;
  }

  #startEnds(base: number): void {
    this.starting = false;
    this.#base = this.#found = base;
    this.#forget();
  }

  #settle({ whole, unit, sentAt }: LimitSample, now: number): void {
    const next = whole
      ? this.#wholeAnswers.next(this.#base, this.#epoch)
      : this.#firstTokens.next(this.#base, this.#epoch, this.#kept, this.#longer(), now);
    // Where the hard cap holds it there is no sense in going on without it.
    const { inFlight } = this.#epoch;
    const most =
      inFlight < CAPPED * this.limit ? inFlight / (1 + this.#wholeAnswers.size) : UNUSED_MAX * inFlight;
    const base = Math.min(next, most, Math.max(this.#base, this.#ceilingNow(now)));
    if (base < next) this.#held();
    if (next < this.#base) this.#found = next;
    const free = now - this.#freeAt < FREE_MS ? this.#free : 0;
    this.#base = Math.max(base, free, REQUESTS_MIN * unit);
    this.#using(this.#base, now); // it takes a while to be filled
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
    this.#base = this.#found = from * (1 - Math.max(CUT_MIN, Math.min(CUT_MAX, over)));
    this.#forget();
    this.#begin(now);
  }

  /** What it may grow to: a little less than what was too much a little while ago. */
  #ceilingNow(now: number): number {
    return now - this.#ceilingAt < CEILING_MS ? this.#ceiling * (1 - CUT_MIN) : Number.POSITIVE_INFINITY;
  }

  /** It may not grow as it would: the steps do not get longer meanwhile. */
  #held(): void {
    this.#firstTokens.held();
    this.#wholeAnswers.held();
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
