import { rateAbove } from '../statistics/rate-test.ts';
import { type EvidenceBook, MARKS_OF, type Mark } from './book.ts';
import type { Metric, ReleasePlan } from './contracts.ts';
import { metricsOf, rateMax } from './verdict.ts';

/** First requests at the promoted backend, and those marked, since it was promoted: what had been before is taken off. */
export type WatchBase = Record<Mark, { marked: number; seen: number }>;

export function watchBase(book: EvidenceBook): WatchBase {
  const entries = Object.entries(book.marked).map(([mark, { marked, seen }]) => [mark, { marked, seen }]);
  return Object.fromEntries(entries) as WatchBase;
}

/**
 * Which metric of a promoted backend is worse than its absolute bound, with the evidence, or undefined. Nothing is left to
 * compare it with: it is held to the edges that were frozen from what it replaced, to the bound on failures, and to its own
 * rates before. Formula: the bet of rateAbove on each mark, each at α/5, so that all five marks together have α.
 */
export function worseThanBounds(
  plan: ReleasePlan,
  book: EvidenceBook,
  base: WatchBase,
): { metric: Metric; rate: number; bound: number; log: number; at: number } | undefined {
  const at = Math.log(5 / plan.alpha);
  for (const metric of metricsOf(plan)) {
    if (metric === 'quality') continue;
    for (const mark of MARKS_OF[metric]) {
      const before = base[mark];
      const seen = book.marked[mark].seen - before.seen;
      const marked = book.marked[mark].marked - before.marked;
      const least =
        mark === 'failed' || mark === 'refused' ? plan.errorRateMax : rateMax(mark, plan.ratioMax);
      const own = before.seen === 0 ? 0 : before.marked / before.seen;
      const bound = Math.min(0.5, Math.max(least, plan.ratioMax * own));
      const log = rateAbove(bound, marked, seen);
      if (log >= at) return { metric, rate: marked / seen, bound, log, at };
    }
  }
  return undefined;
}
