import type { Action } from '../contracts.ts';
import type { EvidenceBook } from './book.ts';
import type { HoldCode, ReleasePlan } from './contracts.ts';
import { edgesOf } from './edges.ts';
import type { Standing } from './state.ts';
import { Tally } from './tally.ts';
import { certifyAt, type MetricView, metricsOf, SKEWED_AT, shown, stepsOf, viewOf } from './verdict.ts';

/** What comes next where nothing speaks against it, or what it waits for. Causes are added by the machine. */
export type Next =
  | Omit<Extract<Action, { do: 'freeze' }>, 'causes'>
  | Omit<Extract<Action, { do: 'share' }>, 'causes'>
  | Omit<Extract<Action, { do: 'promote' }>, 'causes'>
  | { do: 'hold'; reason: Action['reason'] & { code: HoldCode } };

/** The metrics that count now: beside a stable that is broken itself, errors alone, by their absolute bound. */
export function viewsNow(plan: ReleasePlan, book: EvidenceBook, ratio?: number): MetricView[] {
  const metrics = book.stable.broken ? (['errors'] as const) : metricsOf(plan);
  return metrics.map((metric) => viewOf(plan, book, metric, ratio));
}

/** The way forward of a release that nothing is to be held against; `phase` is one of those before it is promoted. */
export function nextOf(plan: ReleasePlan, standing: Standing, book: EvidenceBook, nowMs: number): Next {
  const doubt = doubtOf(standing);
  if (doubt) return doubt;
  const open = Object.keys(standing.gates).find((gate) => standing.gates[gate] === 'open');
  if (standing.phase === 'gates' && open) return hold('release-gates-open', { gate: open });
  if (standing.phase === 'shadow') {
    const wanting = pairsWanting(plan, book);
    if (wanting) return wanting;
  }
  const edges = edgesWanting(plan, standing, book);
  if (edges) return edges;
  if (standing.phase !== 'canary') {
    const share = stepsOf(plan)[0]!.share;
    const reason = { code: 'release-canary-begins', figures: { share, edges: standing.edges !== undefined } };
    return { do: 'share', share, reason };
  }
  return stepNext(plan, standing, book, nowMs);
}

/** Nothing is concluded in favour of a canary on figures that cannot be trusted; an operator may still promote it. */
function doubtOf({ broken, skewed }: Standing): Next | undefined {
  if (broken) return hold('release-evidence-broken', { member: broken.member });
  return skewed && hold('release-arms-skewed', { e: skewed.e, at: SKEWED_AT });
}

function pairsWanting(plan: ReleasePlan, book: EvidenceBook): Next | undefined {
  const { pairs } = book.counts;
  const min = plan.shadow?.pairsMin ?? 0;
  if (pairs < min) return hold('release-pairs-wanting', { pairs, min });
  if (!plan.metrics.includes('quality')) return undefined;
  const view = viewOf(plan, book, 'quality');
  return view.harmless >= certifyAt(plan) ? undefined : uncertified(plan, view);
}

/** What is slow has to be known before the canary begins, or as soon as stable is well enough to say. */
function edgesWanting(plan: ReleasePlan, standing: Standing, book: EvidenceBook): Next | undefined {
  const needed = plan.metrics.includes('latency') || plan.metrics.includes('cost');
  if (!needed || standing.edges || book.stable.broken) return undefined;
  const { baseline, stable } = book.arms;
  const edges = edgesOf(Tally.sum(stable, baseline));
  const requests = stable.requests + baseline.requests;
  if (!edges || (plan.metrics.includes('cost') && edges.cost === undefined)) {
    return hold('release-edges-wanting', { requests });
  }
  const figures = { requests, classes: Object.keys(edges.times).length };
  return { do: 'freeze', edges, reason: { code: 'release-edges-frozen', figures } };
}

function stepNext(plan: ReleasePlan, standing: Standing, book: EvidenceBook, nowMs: number): Next {
  const steps = stepsOf(plan);
  const step = steps[standing.step]!;
  const lastedMs = nowMs - standing.stepSinceMs;
  const sessions = Math.floor(book.counts.sessions - standing.stepSessionsBefore);
  const { sessionsMin, timeMinMs } = plan.step;
  if (lastedMs < timeMinMs || sessions < sessionsMin) {
    return hold('release-step-unripe', { sessions, sessionsMin, lastedMs, timeMinMs });
  }
  const leaning = viewsNow(plan, book).find(({ harm }) => harm > 0);
  if (leaning) {
    return hold('release-evidence-leans', {
      metric: leaning.metric,
      e: shown(leaning.harm),
      at: shown(leaning.harmAt),
    });
  }
  const wanting = wantingOf(plan, book);
  const following = steps[standing.step + 1];
  if (wanting === undefined && (following === undefined || plan.plan === 'auto'))
    return promotion(plan, book);
  if (following === undefined) return uncertified(plan, wanting!);
  if (step.ratio !== undefined) {
    const early = wantingOf(plan, book, step.ratio);
    if (early) return uncertified(plan, early, step.ratio);
    const figures = { share: following.share, ratio: step.ratio, sessions };
    return { do: 'share', share: following.share, reason: { code: 'release-step-ruled-out', figures } };
  }
  const figures = { share: following.share, sessions, lastedMs };
  return { do: 'share', share: following.share, reason: { code: 'release-step-passed', figures } };
}

/** The first metric whose certificate is not there, at that ratio; of a broken stable the absolute bound alone says something. */
function wantingOf(plan: ReleasePlan, book: EvidenceBook, ratio?: number): MetricView | undefined {
  const at = certifyAt(plan);
  if (book.stable.broken) {
    const view = viewOf(plan, book, 'errors');
    const { failed, refused } = book.marked;
    const harmless = Math.min(failed.rateBelow(plan.errorRateMax), refused.rateBelow(plan.errorRateMax));
    return harmless >= at ? undefined : { ...view, harmless };
  }
  return viewsNow(plan, book, ratio).find(({ harmless }) => harmless < at);
}

function promotion(plan: ReleasePlan, book: EvidenceBook): Next {
  const figures = { alpha: plan.alpha, sessions: Math.floor(book.counts.sessions) };
  if (book.stable.broken) {
    const failing = Number(book.stable.failing.toPrecision(3));
    const reason = {
      code: 'release-certified-as-stable-broken',
      figures: { ...figures, failing, rate: plan.errorRateMax },
    };
    return { do: 'promote', reason };
  }
  const metrics = metricsOf(plan).join(', ');
  return {
    do: 'promote',
    reason: { code: 'release-certified', figures: { ...figures, metrics, ratio: plan.ratioMax } },
  };
}

function uncertified(plan: ReleasePlan, { metric, harmless }: MetricView, ratio = plan.ratioMax): Next {
  const figures = { metric, e: shown(harmless), at: shown(certifyAt(plan)), ratio };
  return hold('release-certificates-wanting', figures);
}

function hold(code: HoldCode, figures: Action['reason']['figures']): Next {
  return { do: 'hold', reason: { code, figures } };
}
