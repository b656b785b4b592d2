import type { PipelineSettings } from '../config/schema/index.ts';
import { allBefore, membersOf, type StageMember } from '../config/stage-order.ts';
import type { Spread } from '../telemetry/tally.ts';
import { Expression } from './flow/expressions.ts';
import type { StageKind, StageSettings } from './kinds/contracts.ts';
import { kindOf } from './kinds/index.ts';
import { StageTimes } from './stage-times.ts';
import { Template } from './templates.ts';

/** A stage of a pipeline, as it is run. */
export interface PlannedStage {
  index: number;
  name: string;
  settings: StageSettings;
  /** Undefined where it asks nobody, and is made of what others found out. */
  kind: StageKind | undefined;
  /** What it may give. */
  gives: ReadonlySet<StageMember>;
  /** Stages that come right after it, and how many it comes right after. */
  next: PlannedStage[];
  before: number;
  /** Those that it comes after, directly or through others. */
  sees: ReadonlySet<string>;
  isLast: boolean;
  /** What it says may be the answer: it is the last one, or one of those that the last one takes the first of. */
  answers: boolean;
  /** What it took lately; kept over snapshots. */
  times: StageTimes;
  /** Where its time is counted, once it has run. */
  seconds: Spread | undefined;
}

/** A pipeline, put in order once for each snapshot. */
export interface PipelinePlan {
  name: string;
  settings: PipelineSettings;
  /** Each comes after those that it waits for. */
  stages: PlannedStage[];
  last: PlannedStage;
  /** By a name that there is. */
  stage(name: string): PlannedStage;
  /** The template that a text of the configuration is. Throws where it is none. */
  template(text: string): Template;
  expression(text: string): Expression;
}

/** Puts the stages of a checked pipeline in order. `timesOf` gives what is known of a stage by its name. */
export function planPipeline(
  name: string,
  settings: PipelineSettings,
  timesOf: (stage: string) => StageTimes,
): PipelinePlan {
  const byName = new Map<string, PlannedStage>();
  const stages: PlannedStage[] = [];
  const add = (stageName: string): PlannedStage => {
    const known = byName.get(stageName);
    if (known) return known;
    const stage = settings.stages[stageName]!;
    const before = [...new Set(stage.after)].map(add);
    const planned: PlannedStage = {
      index: stages.length,
      name: stageName,
      settings: stage,
      kind: kindOf(stage),
      gives: membersOf(stageName, settings.stages),
      next: [],
      before: before.length,
      sees: allBefore(stageName, settings.stages),
      isLast: false,
      answers: false,
      times: timesOf(stageName),
      seconds: undefined,
    };
    for (const each of before) each.next.push(planned);
    byName.set(stageName, planned);
    stages.push(planned);
    return planned;
  };
  for (const stageName of Object.keys(settings.stages)) add(stageName);
  const last = stages.find(({ next }) => next.length === 0)!;
  last.isLast = true;
  const mark = (stage: PlannedStage): void => {
    if (stage.answers) return;
    stage.answers = true;
    for (const name of stage.settings.first ?? []) mark(byName.get(name)!);
  };
  mark(last);
  return {
    name,
    settings,
    stages,
    last,
    stage: (known) => byName.get(known)!,
    template: madeOnce((text) => new Template(text)),
    expression: madeOnce((text) => new Expression(text)),
  };
}

/** The texts are those of the configuration, and no more than it has. */
function madeOnce<Made>(make: (text: string) => Made): (text: string) => Made {
  const made = new Map<string, Made>();
  return (text) => {
    let known = made.get(text);
    if (known === undefined) {
      known = make(text);
      made.set(text, known);
    }
    return known;
  };
}

/** Plans by the settings that they are of, and what is known of stages by name, over all snapshots. */
export class Plans {
  #plans = new WeakMap<PipelineSettings, PipelinePlan>();
  readonly #times = new Map<string, Map<string, StageTimes>>();

  of(name: string, settings: PipelineSettings): PipelinePlan {
    let plan = this.#plans.get(settings);
    if (!plan) {
      const known = this.#times.get(name) ?? new Map<string, StageTimes>();
      // What is no stage any more is forgotten.
      for (const stage of known.keys()) if (!Object.hasOwn(settings.stages, stage)) known.delete(stage);
      this.#times.set(name, known);
      plan = planPipeline(name, settings, (stage) => {
        const times = known.get(stage) ?? new StageTimes();
        known.set(stage, times);
        return times;
      });
      this.#plans.set(settings, plan);
    }
    return plan;
  }

  /** Lets go of what is known of pipelines that there are no more. */
  keepOnly(has: (name: string) => boolean): void {
    for (const name of this.#times.keys()) if (!has(name)) this.#times.delete(name);
  }
}
