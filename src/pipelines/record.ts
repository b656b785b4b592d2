import type { Step } from '../events/contracts.ts';
import type { Exchange, Path } from '../gateway/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { ERRORS } from '../kernel/errors.ts';
import type { StageValue } from './kinds/contracts.ts';
import type { PlannedStage } from './plan.ts';
import type { CallEnd } from './stage-call.ts';

/** Steps of one record: what its stages' requests did is told up to there; how each stage ended is always told. */
const STEPS_MAX = 200;

/** Where a stage stands in the configuration. */
export function settingOf(x: Exchange, stage: PlannedStage, key: string): string {
  return `pipelines.${x.route!.name}.stages.${stage.name}.${key}`;
}

/** The value that a stage's time follows from. */
export function timeSetting(x: Exchange, stage: PlannedStage): string {
  return stage.settings.budget === undefined
    ? `pipelines.${x.route!.name}.deadline`
    : settingOf(x, stage, 'budget');
}

/** A step of a stage, in the record of its pipeline. */
export function tell(
  path: Path,
  x: Exchange,
  stage: PlannedStage,
  code: string,
  figures: Step['figures'],
  setting?: string,
): void {
  path.step(x, 'stage', code, { stage: stage.name, ...figures }, setting);
  x.steps.at(-1)!.stage = stage.name;
}

/** What the request of a stage met on its way, as steps of its pipeline. */
export function tellWay(x: Exchange, stage: PlannedStage, inner: Exchange): void {
  const laterBy = inner.startedAt - x.startedAt;
  const ownDeadline = `routes.${inner.route?.name}.deadline`;
  for (const step of inner.steps) {
    if (x.steps.length >= STEPS_MAX) return;
    // Its time, and what came of it, are told with how the stage ended.
    if (step.code === 'admitted' || (step.what === 'answer' && step.code !== 'deadline-passed')) continue;
    const told: Step = { ...step, at: Math.max(0, step.at + laterBy), stage: stage.name };
    // It was not its route's deadline that it had to keep.
    if (step.setting === ownDeadline) told.setting = timeSetting(x, stage);
    x.steps.push(told);
  }
}

/** What asking a route came to, in figures. */
export function figuresOf({ inner, tookMs }: CallEnd, budgetMs: number): Step['figures'] {
  const figures: Step['figures'] = {
    tookMs: Math.round(tookMs),
    ...(Number.isFinite(budgetMs) ? { budgetMs: Math.round(budgetMs) } : {}),
  };
  if (!inner) return figures;
  if (inner.route) figures['route'] = inner.route.name;
  if (inner.backend) figures['backend'] = inner.backend.name;
  if (inner.degraded !== undefined) figures['rung'] = inner.degraded;
  if (inner.tokensIn !== undefined) figures['tokensIn'] = inner.tokensIn;
  if (inner.tokensOut !== undefined) figures['tokensOut'] = inner.tokensOut;
  if (inner.attempts > 1) figures['attempts'] = inner.attempts;
  const price = inner.backend?.settings.price;
  if (price && inner.tokensIn !== undefined) {
    figures['cost'] = (inner.tokensIn * price.in + (inner.tokensOut ?? 0) * price.out) / 1e6;
  }
  return figures;
}

/** What a stage found out, as far as a record may tell it: no caller's words. */
export function foundOut({ class: found, score, items, vectors }: StageValue): Step['figures'] {
  return {
    ...(found === undefined ? {} : { class: found }),
    ...(score === undefined ? {} : { score: Number(score.toFixed(4)) }),
    ...(items === undefined ? {} : { items: items.length }),
    ...(vectors === undefined ? {} : { vectors: vectors.length }),
  };
}

export function statusOf(failure: Failure): number {
  return failure.status ?? ERRORS[failure.code].status;
}
