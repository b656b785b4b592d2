import type { Decision, Policy } from '../contracts.ts';

/** One place of so many goes to the lowest priority that waits, so that nobody starves. */
const TRICKLE = 16;

export interface OrderInput {
  /** How many wait at each priority, highest first. One at least is above 0. */
  waiting: readonly number[];
}

/** Whose turn it is when a place comes free: the highest priority's, save for a trickle to the lowest. */
export class PriorityOrder implements Policy<OrderInput, number> {
  readonly name = 'priority-order';
  readonly version = 1;
  #turn = 0;

  decide({ waiting }: OrderInput): Decision<number> {
    const highest = waiting.findIndex((count) => count > 0);
    const lowest = waiting.findLastIndex((count) => count > 0);
    if (highest === lowest) return { choice: highest, reason: { code: 'only-priority', figures: {} } };
    this.#turn = (this.#turn + 1) % TRICKLE;
    return this.#turn === 0
      ? { choice: lowest, reason: { code: 'trickle-to-lowest', figures: { one: TRICKLE } } }
      : { choice: highest, reason: { code: 'highest-priority', figures: {} } };
  }
}
