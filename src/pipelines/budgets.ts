import type { PlannedStage } from './plan.ts';

/** The shortest time that a stage is reckoned to take: a share of nothing would be no time at all. */
const USUAL_MS_MIN = 0.5;

/**
 * When a stage that starts `now` is due, monotonic; `deadlineAt` is when its pipeline is. A configured budget is a ceiling. A stage
 * without one has all that is left. With `budget: auto` it has its part of what is left for the critical way from it to the end of
 * the pipeline (see README.md).
 */
export function dueAt(stage: PlannedStage, now: number, deadlineAt: number): number {
  const { budget } = stage.settings;
  if (budget === undefined) return deadlineAt;
  if (budget !== 'auto') return Math.min(deadlineAt, now + budget);
  return Math.min(deadlineAt, now + autoBudgetMs(stage, deadlineAt - now));
}

/** The part of `leftMs` that is for this stage. */
export function autoBudgetMs(stage: PlannedStage, leftMs: number): number {
  const way = criticalWay(stage);
  let fixedMs = 0;
  let known = 0;
  let knownMs = 0;
  let shared = 0;
  for (const each of way) {
    const { budget } = each.settings;
    if (typeof budget === 'number') {
      fixedMs += budget;
      continue;
    }
    if (each.kind === undefined) continue; // it asks nobody, and takes no time
    shared++;
    const usual = usualMs(each);
    if (usual === undefined) continue;
    known++;
    knownMs += usual;
  }
  // Of a stage of which nothing is known yet it is thought that it takes as long as the others do.
  const unknownMs = known === 0 ? 1 : knownMs / known;
  const weight = usualMs(stage) ?? unknownMs;
  const weights = knownMs + (shared - known) * unknownMs;
  return (Math.max(0, leftMs - fixedMs) * weight) / weights;
}

/** The way from a stage to the end that takes longest: by budgets where they are fixed, else by what stages took lately. */
function criticalWay(stage: PlannedStage): PlannedStage[] {
  const best = new Map<PlannedStage, { ms: number; next: PlannedStage | undefined }>();
  const longest = (from: PlannedStage): number => {
    const known = best.get(from);
    if (known) return known.ms;
    let next: PlannedStage | undefined;
    let after = 0;
    for (const each of from.next) {
      const ms = longest(each);
      if (next === undefined || ms > after) {
        next = each;
        after = ms;
      }
    }
    const { budget } = from.settings;
    const own = typeof budget === 'number' ? budget : from.kind === undefined ? 0 : (usualMs(from) ?? 1);
    const ms = after + own;
    best.set(from, { ms, next });
    return ms;
  };
  longest(stage);
  const way: PlannedStage[] = [];
  for (let at: PlannedStage | undefined = stage; at; at = best.get(at)!.next) way.push(at);
  return way;
}

function usualMs({ times }: PlannedStage): number | undefined {
  const ms = times.usualMs;
  return ms === undefined ? undefined : Math.max(USUAL_MS_MIN, ms);
}
