import type { Decision, Policy } from '../contracts.ts';

/** Retries that may be made before traffic has earned any, and the most that can be saved up. */
const RESERVE = 10;
/** Retries earned by time alone, so that a quiet route is not left without. */
const EARNED_PER_SECOND = 1;

export interface RetryInput {
  /** Share of traffic that may be retries; 0 is none at all. */
  budget: number;
}

/**
 * The one budget of retries of a route: every request earns `budget` of a retry, every retry costs one.
 * Source of the shape: Finagle's RetryBudget (share of traffic, plus a floor per second).
 */
export class RetryBudget implements Policy<RetryInput, boolean, RetryInput> {
  readonly name = 'retry-budget';
  readonly version = 2;
  #saved = RESERVE;
  #at = 0;

  decide(input: RetryInput, now: number): Decision<boolean> {
    this.#earn(now);
    const granted = input.budget > 0 && this.#saved >= 1;
    if (granted) this.#saved--;
    const figures = { saved: Math.round(this.#saved * 100) / 100, budget: input.budget };
    return { choice: granted, reason: { code: granted ? 'retry-granted' : 'retry-budget-spent', figures } };
  }

  /** A request has come. */
  observe(event: RetryInput): void {
    this.#saved = Math.min(RESERVE, this.#saved + event.budget);
  }

  #earn(now: number): void {
    if (now > this.#at) {
      this.#saved = Math.min(RESERVE, this.#saved + ((now - this.#at) / 1000) * EARNED_PER_SECOND);
      this.#at = now;
    }
  }
}
