import { logMean } from '../statistics/log-mean.ts';
import { AUTO_STEPS, type EvidenceBook, MARKS_OF } from './book.ts';
import type { Metric, MetricReport, ReleasePlan } from './contracts.ts';

/** Of the chance of a false abort, half goes to metrics one by one, and of that so much to errors where there are others. */
const ERRORS_PART = 0.9;
/** Evidence that sessions do not fall by the share has to be so strong. */
export const SKEWED_AT = 1000;
/** Of failures and refusals, which counts more as harm. */
const ERROR_WEIGHTS = [9, 1] as const;
/** What is beyond frozen edges when nothing has changed: see edges.ts. */
const BEYOND = { slowP95: 0.05, slowP99: 0.01, dearP95: 0.05 } as const;

/** What is known of one metric: e-values by their logarithms. */
export interface MetricView {
  metric: Metric;
  harm: number;
  /** An abort is due from here on. */
  harmAt: number;
  /** That it is not worse than the plan allows. */
  harmless: number;
}

/** The metrics of a plan; errors are always of it. */
export function metricsOf({ metrics }: ReleasePlan): Metric[] {
  return ['errors', ...metrics.filter((metric, i) => metric !== 'errors' && metrics.indexOf(metric) === i)];
}

export function certifyAt(plan: ReleasePlan): number {
  return Math.log(1 / plan.alpha);
}

/** `ratio`: how many times as often may not be; of the plan where it is not given. */
export function viewOf(
  plan: ReleasePlan,
  book: EvidenceBook,
  metric: Metric,
  ratio = plan.ratioMax,
): MetricView {
  const others = metricsOf(plan).length - 1;
  const part = others === 0 ? 1 : metric === 'errors' ? ERRORS_PART : (1 - ERRORS_PART) / others;
  const harmAt = Math.log(1 / (part * (plan.alpha / 2)));
  if (metric === 'quality') {
    return { metric, harm: book.quality.harm(), harmAt, harmless: book.quality.harmless() };
  }
  if (metric === 'errors') {
    const { failed, refused } = book.marked;
    const harm = logMean([failed.harm(), refused.harm()], ERROR_WEIGHTS);
    const rate = Math.min(0.5, (plan.errorRateMax * ratio) / plan.ratioMax);
    const harmless = Math.min(failed.harmless(ratio, rate), refused.harmless(ratio, rate));
    return { metric, harm, harmAt, harmless };
  }
  const marks = MARKS_OF[metric];
  const harm = logMean(marks.map((mark) => book.marked[mark].harm()));
  const harmless = book.measures(metric)
    ? Math.min(...marks.map((mark) => book.marked[mark].harmless(ratio, rateMax(mark, ratio))))
    : Number.NEGATIVE_INFINITY;
  return { metric, harm, harmAt, harmless };
}

/** The share of first requests beyond a frozen edge that is too many at that ratio. */
export function rateMax(mark: keyof typeof BEYOND, ratio: number): number {
  return Math.min(0.5, BEYOND[mark] * ratio);
}

/** Why the canary has to go: one metric, or the mean of all, which are logarithms; undefined where neither says so. */
export type Harm = { by: 'metric'; view: MetricView } | { by: 'mean'; log: number; at: number } | undefined;

/**
 * Whether the canary has to go. Formula (A5): one metric beyond 1/α_k, of all of which the α_k are α/2 together; or the mean
 * of all beyond 2/α, which holds whatever the metrics have to do with one another. Both together: α.
 */
export function harmOf(plan: ReleasePlan, views: readonly MetricView[]): Harm {
  const worst = views.find(({ harm, harmAt }) => harm >= harmAt);
  if (worst) return { by: 'metric', view: worst };
  const log = logMean(views.map(({ harm }) => harm));
  const at = Math.log(2 / plan.alpha);
  return log >= at ? { by: 'mean', log, at } : undefined;
}

export interface PlanStep {
  share: number;
  /** What has to be ruled out before the next; undefined where the plan says only how long it takes. */
  ratio?: number;
}

/** Shares below 1, in order: after the last of them it is promoted. */
export function stepsOf(plan: ReleasePlan): PlanStep[] {
  if (plan.plan !== 'auto')
    return plan.plan.filter((percent) => percent < 100).map((percent) => ({ share: percent / 100 }));
  return AUTO_STEPS.map(({ share, ratio }) => ({ share, ratio: Math.max(ratio, plan.ratioMax) }));
}

export function metricReport(plan: ReleasePlan, book: EvidenceBook, metric: Metric): MetricReport {
  const view = viewOf(plan, book, metric);
  const marks = metric === 'quality' ? [] : MARKS_OF[metric].map((mark) => book.marked[mark]);
  const sum = (of: 'canary' | 'others') => marks.reduce((all, marked) => all + marked[of], 0);
  const at = certifyAt(plan);
  return {
    metric,
    abort: shown(view.harm),
    abortAt: shown(view.harmAt),
    certificate: shown(view.harmless),
    certifyAt: shown(at),
    certified: view.harmless >= at,
    canary: metric === 'quality' ? book.counts.pairs : sum('canary'),
    others: sum('others'),
  };
}

/** An e-value from its logarithm, to four digits; what no number can hold is the largest one. */
export function shown(log: number): number {
  return Number(Math.min(Number.MAX_VALUE, Math.exp(log)).toPrecision(4));
}
