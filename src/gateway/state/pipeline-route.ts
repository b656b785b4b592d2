import type { PipelineSettings, RouteSettings } from '../../config/schema/index.ts';
import { priorities } from '../../kernel/priorities.ts';
import { Displacement } from '../../policies/displacement/index.ts';
import { RetryBudget } from '../../policies/retry-budget/index.ts';
import { UsualTimes } from './usual-times.ts';
import type { Route } from './world.ts';

/** A pipeline as the route that it is called like: it has a deadline, and everything else is its stages' own. */
export function pipelineRoute(name: string, pipeline: PipelineSettings): Route {
  const settings: RouteSettings = {
    targets: [],
    shadow: [],
    ladder: [],
    deadline: pipeline.deadline,
    queue: { max: 0 },
    affinity: 'session',
    retry: { attempts: 1, budget: 0 },
    singleFlight: false,
    effects: false,
    retired: false,
  };
  return {
    name,
    pipeline,
    settings,
    targets: { openai: [], oip: [] },
    tiers: undefined,
    remembers: false,
    retries: new RetryBudget(),
    answers: undefined,
    prepare: undefined,
    waiting: new Displacement(priorities.length),
    hedges: undefined,
    release: undefined,
    takenBack: undefined,
    shadows: undefined,
    drift: undefined,
    hold: undefined,
    times: new UsualTimes(),
    usualOut: { value: undefined, answers: 0 },
  };
}
