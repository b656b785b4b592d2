import type { Decision, Policy } from '../contracts.ts';

/** One contested place of so many goes below the highest priority that waits. */
const TRICKLE = 16;

export interface OrderInput {
  /** How many wait at each priority, highest first. One at least is above 0. */
  waiting: readonly number[];
}

/**
 * Whose turn it is when a place comes free: the highest priority's, save for a trickle that the lower ones have in turn,
 * so that none of them starves.
 */
export class PriorityOrder implements Policy<OrderInput, number> {
  readonly name = 'priority-order';
  readonly version = 2;
  #turn = 0;
  /** Whose turn the trickle was last. */
  #last = Number.POSITIVE_INFINITY;

  decide({ waiting }: OrderInput): Decision<number> {
    const highest = waiting.findIndex((count) => count > 0);
    const lowest = waiting.findLastIndex((count) => count > 0);
    if (highest === lowest) return { choice: highest, reason: { code: 'only-priority', figures: {} } };
    this.#turn = (this.#turn + 1) % TRICKLE;
    if (this.#turn !== 0) return { choice: highest, reason: { code: 'highest-priority', figures: {} } };
    // Upwards from the one that had it last, then from the lowest again.
    const above = waiting.findLastIndex((count, at) => count > 0 && at > highest && at < this.#last);
    this.#last = above < 0 ? lowest : above;
    return { choice: this.#last, reason: { code: 'trickle', figures: { one: TRICKLE } } };
  }
}
