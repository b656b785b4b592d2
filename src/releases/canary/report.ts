import type { EvidenceBook } from './book.ts';
import type { ReleasePlan, ReleaseReport } from './contracts.ts';
import { nextOf } from './course.ts';
import { phaseEndsMs, type Standing } from './state.ts';
import { metricReport, metricsOf, SKEWED_AT, shown, stepsOf } from './verdict.ts';

/** How a release stands, for people and consoles. */
export function reportOf(
  plan: ReleasePlan,
  standing: Standing,
  book: EvidenceBook,
  nowMs: number,
): ReleaseReport {
  const { phase, step, share, watch, edges, last } = standing;
  const { counts } = book;
  const under = phase !== 'promoted' && phase !== 'rolled-back';
  const next = under ? nextOf(plan, standing, book, nowMs) : undefined;
  return {
    phase,
    step: step + 1,
    steps: stepsOf(plan).length,
    share,
    ...(under
      ? { phaseEndsMs: phaseEndsMs(plan, standing)!, endsMs: standing.beganMs + plan.deadlineMs }
      : {}),
    ...(watch && phase === 'promoted' ? { watchedUntilMs: watch.sinceMs + plan.watchMs } : {}),
    ended: standing.ended,
    ...(next?.do === 'hold' ? { waitsFor: next.reason } : {}),
    ...(last ? { last } : {}),
    metrics: metricsOf(plan).map((metric) => metricReport(plan, book, metric)),
    assignment: {
      e: shown(book.assignment.skewed()),
      frozenAt: SKEWED_AT,
      canary: counts.canary,
      baseline: counts.baseline,
    },
    arms: {
      canary: book.arms.canary.report(),
      baseline: book.arms.baseline.report(),
      stable: book.arms.stable.report(),
    },
    ...(edges ? { edges } : {}),
    sessions: {
      step: Math.floor(counts.sessions - standing.stepSessionsBefore),
      all: Math.floor(counts.sessions),
    },
    pairs: counts.pairs,
    skipped: { ...book.skipped },
    gates: { ...standing.gates },
    stableBroken: book.stable.broken,
  };
}
