import type { Decision, Policy } from '../contracts.ts';

/** The most hedges that can be saved up, and what a route begins with. */
const SAVED_MAX = 10;
const SAVED_FIRST = 1;

export interface HedgeInput {
  /** Share of traffic that may be hedges, from 0 to 1. */
  budget: number;
}

/**
 * The budget of second attempts that run beside the first: a token bucket that requests fill and hedges empty. Unlike
 * the budget of retries it earns nothing by time alone: a quiet route waits rather than asks twice.
 */
export class HedgeBudget implements Policy<HedgeInput, boolean, HedgeInput> {
  readonly name = 'hedge-budget';
  readonly version = 1;
  #saved = SAVED_FIRST;

  decide({ budget }: HedgeInput): Decision<boolean> {
    const granted = budget > 0 && this.#saved >= 1;
    if (granted) this.#saved--;
    const figures = { saved: Math.round(this.#saved * 100) / 100, budget };
    return { choice: granted, reason: { code: granted ? 'hedge-granted' : 'hedge-budget-spent', figures } };
  }

  /** A request that could be hedged was sent. */
  observe({ budget }: HedgeInput): void {
    this.#saved = Math.min(SAVED_MAX, this.#saved + budget);
  }

  /** A hedge that was granted reached no engine. */
  giveBack(): void {
    this.#saved = Math.min(SAVED_MAX, this.#saved + 1);
  }
}
