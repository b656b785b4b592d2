import type { LimitSample } from '../limit-contract.ts';

/** Sums over the answers of one epoch, or of several that are alike. */
export class Side {
  count = 0;
  #excess = 0;
  #squares = 0;
  #held = 0;
  #inFlight = 0;

  add({ excess, held, inFlight }: LimitSample): void {
    this.count++;
    this.#excess += excess;
    this.#squares += excess * excess;
    this.#held += held;
    this.#inFlight += inFlight;
  }

  addAll(other: Side): void {
    this.count += other.count;
    this.#excess += other.#excess;
    this.#squares += other.#squares;
    this.#held += other.#held;
    this.#inFlight += other.#inFlight;
  }

  /** Mean units in flight. */
  get inFlight(): number {
    return this.#inFlight / this.count;
  }

  /** How much longer answers took than their sizes take at least, as a share of the time for which a place is held. */
  get longer(): number {
    return this.#excess / this.#held;
  }

  get held(): number {
    return this.#held / this.count;
  }

  get excess(): number {
    return this.#excess / this.count;
  }

  /** Square of the standard error of the mean excess. */
  get error2(): number {
    const mean = this.excess;
    return Math.max(0, this.#squares / this.count - mean * mean) / this.count;
  }

  scale(by: number): void {
    this.count *= by;
    this.#excess *= by;
    this.#squares *= by;
    this.#held *= by;
    this.#inFlight *= by;
  }

  clear(): void {
    this.count = this.#excess = this.#squares = this.#held = this.#inFlight = 0;
  }
}

/**
 * Of the units by which two sides differ, the share that only waits: the longer time, as a share of the time that a place
 * is held, over the growth of what is in flight. By Little's law it is 0 where throughput grows as what is in flight does,
 * and 1 where it does not grow at all.
 */
export function waitsOf(less: Side, more: Side): number {
  const held = (more.held * more.count + less.held * less.count) / (more.count + less.count);
  return (more.excess - less.excess) / held / Math.max(spreadOf(less, more), 1e-3);
}

/** By how much more is in flight on one side, as a logarithm. */
export function spreadOf(less: Side, more: Side): number {
  return Math.log(more.inFlight / less.inFlight);
}
