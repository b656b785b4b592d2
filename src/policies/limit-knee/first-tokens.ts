import { type Side, spreadOf, waitsOf } from './side.ts';

/** What waits inside the engine, as a share of what is in flight there: what it is brought to. */
const WAITING = 0.05;
/** Part of the way there that one epoch goes. */
const GAIN = 0.7;
const CUT_MAX = 0.3;
/** Growth of an epoch where nothing waits, by how much the next one in a row is more, and the most. */
const GROWTH = 0.05;
const GROWTH_GROWTH = 1.6;
const GROWTH_MAX = 0.5;
/** What first tokens take longer in a full batch is taken to be this, until more is known. */
const LONGER_FIRST = 0.05;
const LONGER_MAX = 0.15;
/** Weight of an epoch in what is remembered of an engine that has no queue. */
const WEIGHT = 0.3;
/** A dip: one epoch below the limit by this share, after so many epochs; sooner where much stands and seems to wait. */
const DIP = 0.15;
const DIP_EVERY = 24;
const DIP_SOON = 4;
const SUSPICIOUS = 0.12;
/** Of what a dip takes away, the share that only waited, below which nothing is taken to wait. */
const WAITS_MAX = 0.5;

/**
 * Moves the limit by the first tokens of streams. What a first token takes longer than in a batch that is full and has no
 * queue is the time that it waits for a place in the engine; over the time for which a place is held it is, by Little's law,
 * the share of what is in flight that waits there.
 */
export class FirstTokens {
  /** What first tokens take longer where nothing waits, as a share of the time for which a place is held. */
  #unhindered = LONGER_FIRST;
  #growth = GROWTH;
  #epochs = 0;
  #dipped = false;
  /** Since when more seems to wait than is wanted, infinite where it is not known; and the least that it seemed since. */
  #since = Number.POSITIVE_INFINITY;
  #least = Number.POSITIVE_INFINITY;

  /** How far the coming epoch keeps below the base. */
  dip = 0;

  /** The next base. `took`: what first tokens took longer, as a share of the time for which a place is held. */
  next(base: number, epoch: Side, keep: Side, took: number, now: number): number {
    const longer = Math.max(0, took);
    if (this.#dipped) return this.#learn(base, epoch, keep, longer, now);
    if (longer < this.#unhindered) this.#unhindered += WEIGHT * (longer - this.#unhindered);
    const move = WAITING - (longer - this.#unhindered);
    if (move > 0) this.#forgetQueue(now);
    else {
      this.#since = Math.min(this.#since, now);
      this.#least = Math.min(this.#least, longer);
    }
    if (++this.#epochs >= (this.#stands(epoch, now) && this.#least > SUSPICIOUS ? DIP_SOON : DIP_EVERY)) {
      this.#epochs = 0;
      this.#dipped = true;
      this.dip = DIP;
      keep.clear();
      keep.addAll(epoch);
      return base;
    }
    if (move > WAITING / 2 || longer < WAITING) {
      const next = base * (1 + this.#growth);
      this.#growth = Math.min(GROWTH_MAX, this.#growth * GROWTH_GROWTH);
      return next;
    }
    this.#growth = GROWTH;
    return move > 0 ? base * (1 + GAIN * move) : this.#lessBy(base, epoch, now);
  }

  /**
   * A queue is what is there all the time for which a place is held: a burst, or a pause of the gateway's or the engine's
   * process, is over sooner. The least of that time counts, as in CoDel.
   */
  #stands(epoch: Side, now: number): boolean {
    return this.#least < Number.POSITIVE_INFINITY && now - this.#since >= epoch.held;
  }

  #lessBy(base: number, epoch: Side, now: number): number {
    if (!this.#stands(epoch, now)) return base;
    const tooMuch = this.#least - this.#unhindered - WAITING;
    this.#forgetQueue(now);
    return base * (1 - Math.max(0, Math.min(CUT_MAX, GAIN * tooMuch)));
  }

  #forgetQueue(now: number): void {
    this.#since = now;
    this.#least = Number.POSITIVE_INFINITY;
  }

  /** It was not let grow. */
  held(): void {
    this.#growth = GROWTH;
  }

  forget(): void {
    this.#since = this.#least = Number.POSITIVE_INFINITY;
    this.#growth = GROWTH;
    this.#epochs = 0;
    this.#dipped = false;
    this.dip = 0;
  }

  #learn(base: number, epoch: Side, keep: Side, longer: number, now: number): number {
    this.#dipped = false;
    this.dip = 0;
    const isDip = spreadOf(epoch, keep) > DIP / 3;
    const waits = isDip ? waitsOf(epoch, keep) : 1;
    let next = base;
    // Where fewer took much longer, something else was in the way: that tells nothing.
    if (longer < this.#unhindered || Math.abs(waits) < WAITS_MAX)
      this.#unhindered = Math.min(LONGER_MAX, this.#unhindered + WEIGHT * (longer - this.#unhindered));
    else if (waits > 0) next = this.#lessBy(base, epoch, now);
    // Those who come in at once as the limit goes up again wait for each other: that is not held against it.
    this.#forgetQueue(now);
    return next;
  }
}
