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
/** A dip: one epoch below the limit by this share, after so many epochs; sooner where much seems to wait. */
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

  /** How far the coming epoch keeps below the base. */
  dip = 0;

  /** The next base. `took`: what first tokens took longer, as a share of the time for which a place is held. */
  next(base: number, epoch: Side, keep: Side, took: number): number {
    const longer = Math.max(0, took);
    if (this.#dipped) return this.#learn(base, epoch, keep, longer);
    if (longer < this.#unhindered) this.#unhindered += WEIGHT * (longer - this.#unhindered);
    const waiting = longer - this.#unhindered;
    this.#epochs++;
    if (this.#epochs >= (longer > SUSPICIOUS ? DIP_SOON : DIP_EVERY)) {
      this.#epochs = 0;
      this.#dipped = true;
      this.dip = DIP;
      keep.clear();
      keep.addAll(epoch);
    }
    const move = WAITING - waiting;
    if (move > WAITING / 2 || longer < WAITING) {
      const next = base * (1 + this.#growth);
      this.#growth = Math.min(GROWTH_MAX, this.#growth * GROWTH_GROWTH);
      return next;
    }
    this.#growth = GROWTH;
    return base * (1 + Math.max(-CUT_MAX, GAIN * move));
  }

  /** It was not let grow. */
  held(): void {
    this.#growth = GROWTH;
  }

  forget(): void {
    this.#growth = GROWTH;
    this.#epochs = 0;
    this.#dipped = false;
    this.dip = 0;
  }

  #learn(base: number, epoch: Side, keep: Side, longer: number): number {
    this.#dipped = false;
    this.dip = 0;
    const isDip = spreadOf(epoch, keep) > DIP / 3;
    if (longer < this.#unhindered || (isDip && waitsOf(epoch, keep) < WAITS_MAX))
      this.#unhindered = Math.min(LONGER_MAX, this.#unhindered + WEIGHT * (longer - this.#unhindered));
    return base;
  }
}
