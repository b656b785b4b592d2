import type { StageValue } from './kinds/contracts.ts';
import type { PipelinePlan, PlannedStage } from './plan.ts';

/**
 * Whether the words of a stage that begins now may go to the caller as they come: it is the last one; or the last one takes the
 * first of several stages that has a text, those before it in that list have none, and nothing else is waited for.
 */
export function mayPassOn(
  stage: PlannedStage,
  plan: PipelinePlan,
  found: Readonly<Record<string, StageValue>>,
): boolean {
  if (stage.isLast) return true;
  return stage.next.every(({ answers }) => answers) && isChosen(stage, plan.last, plan, found);
}

function isChosen(
  stage: PlannedStage,
  by: PlannedStage,
  plan: PipelinePlan,
  found: Readonly<Record<string, StageValue>>,
): boolean {
  if (stage === by) return true;
  const { first, after } = by.settings;
  if (!first || !after.every((name) => first.includes(name) || found[name])) return false;
  for (const name of first) {
    if (isChosen(stage, plan.stage(name), plan, found)) return true;
    if (found[name]?.text !== '') return false; // it has a text, or may still get one
  }
  return false;
}
