import type { Random } from '../../kernel/random.ts';

/** How many lines of one batch may be on their way to one route: few at first. */
const LIMIT_FIRST = 4;
/** A process that is killed has asked at most so many lines in vain: those come back once more. */
export const LIMIT_MAX = 48;
/** A line that waited longer than this share of its service found no room to spare: no more are begun than now. */
const WAITED_SHARE = 0.5;
const SHRINK_SLOW = 0.9;
const SHRINK = 0.5;
const BACKOFF_MS = 200;
const BACKOFF_MS_MAX = 30_000;
/** For how long a limit on requests at once is not tried again, milliseconds. */
const SLOTS_MS = 5_000;

/**
 * Why a line has to be asked once more. `crowded`: there was no place for it in time, while others have theirs; `held`: what it
 * goes on from is in use, which says nothing about others.
 */
export type Later = 'slots' | 'quota' | 'crowded' | 'overloaded' | 'failed' | 'held';

/**
 * How many lines are asked at one time, and when: as many as come back without waiting, so that others hardly feel them and
 * none waits past its deadline. Additive increase, multiplicative decrease, as TCP's (RFC 5681), by what each line met.
 */
export class Pace {
  #limit = LIMIT_FIRST;
  #doubling = true;
  #inflight = 0;
  /** Monotonic: nothing is begun before. */
  #pausedUntil = 0;
  /** It neither grows nor shrinks again before. */
  #grownFrom = 0;
  #shrunkUntil = 0;
  /** Lines in a row that have to be asked once more. */
  #failures = 0;

  get inflight(): number {
    return this.#inflight;
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  hasRoom(now: number): boolean {
    return now >= this.#pausedUntil && this.#inflight < this.limit;
  }

  begin(): void {
    this.#inflight++;
  }

  /** A line was answered: it waited so long for a place, and so long for the engine. */
  answered(waitedMs: number, servedMs: number, now: number): void {
    const wasFull = this.#inflight >= this.limit;
    this.#inflight--;
    this.#failures = 0;
    if (waitedMs <= servedMs * WAITED_SHARE) {
      if (!wasFull || now < this.#grownFrom) return;
      this.#limit = Math.min(LIMIT_MAX, this.#limit + (this.#doubling ? 1 : 1 / this.#limit));
      return;
    }
    this.#doubling = false;
    if (waitedMs > servedMs) this.#shrink(SHRINK_SLOW, servedMs, now);
  }

  /** Its place is free again, and nothing is learned. */
  left(): void {
    this.#inflight--;
  }

  /** A line has to be asked once more, not before `afterMs` where somebody said so. Gives the milliseconds after which it is. */
  refused(why: Later, afterMs: number | undefined, now: number, random: Random): number {
    this.#inflight--;
    if (why === 'held') return 0;
    const backoff = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** this.#failures) * (0.5 + random.next() / 2);
    // Those that were told one time to come again do not all come in the same moment.
    const told = (afterMs ?? 0) * (1 + random.next() / 10);
    this.#doubling = false;
    if (why === 'slots') {
      this.#limit = Math.max(1, this.#inflight);
      this.#grownFrom = now + SLOTS_MS;
      if (this.#inflight === 0) this.#pause(now + told);
      return told;
    }
    if (why === 'quota') {
      this.#pause(now + told);
      return told;
    }
    if (why === 'crowded' && this.#inflight > 0) {
      // Those that have a place say when there is another: fewer are asked, and none is held up.
      this.#shrink(SHRINK, backoff, now);
      return told;
    }
    const ms = Math.max(backoff, why === 'crowded' ? 0 : told);
    if (why !== 'failed' || this.#failures > 0) this.#shrink(SHRINK, ms, now);
    this.#failures++;
    this.#pause(now + ms);
    return ms;
  }

  #shrink(by: number, forMs: number, now: number): void {
    if (now < this.#shrunkUntil) return; // those that were on their way with the first tell the same
    this.#shrunkUntil = now + forMs;
    this.#limit = Math.max(1, this.#limit * by);
  }

  #pause(until: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, until);
  }
}
