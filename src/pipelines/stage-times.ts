import { RecentValues } from '../kernel/recent-values.ts';

/** Times of a stage that are remembered. */
const KEPT = 128;
/** Fewer say nothing. */
const COUNT_MIN = 5;
/** Of 20 times 19 are no longer: a budget that cuts off the usual case is none. */
const QUANTILE = 0.95;

/** What one stage took lately, milliseconds: what `budget: auto` goes by. */
export class StageTimes {
  #values: RecentValues | undefined;

  /** A stage that answered, or was cut when its time was over. One that failed before says nothing of how long it takes. */
  observe(ms: number): void {
    this.#values ??= new RecentValues(KEPT);
    this.#values.add(ms);
  }

  /** Undefined before enough is known. */
  get usualMs(): number | undefined {
    return this.#values?.quantile(QUANTILE, COUNT_MIN);
  }
}
