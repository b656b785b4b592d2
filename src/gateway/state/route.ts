import type { Dialect } from '../../backends/contracts.ts';
import type {
  BackendSettings,
  CompareSettings,
  PipelineSettings,
  RouteSettings,
} from '../../config/schema/index.ts';
import type { Displacement } from '../../policies/displacement/index.ts';
import type { HedgeBudget } from '../../policies/hedge-budget/index.ts';
import type { LadderHold } from '../../policies/ladder-hold/index.ts';
import type { RetryBudget } from '../../policies/retry-budget/index.ts';
import type { AnswerRules } from '../answers/rules.ts';
import type { RouteDrift } from '../drift/route-drift.ts';
import type { PrepareRules } from '../preparing/rules.ts';
import type { RouteRelease } from '../release/route-release.ts';
import type { Endpoint } from './endpoint.ts';
import type { HostState } from './host-state.ts';
import type { RouteTiers } from './route-tiers.ts';
import type { UsualTimes } from './usual-times.ts';
import type { WaitingLine, Yielder } from './waiting-line.ts';

/** One backend as a snapshot has it. */
export interface Backend {
  name: string;
  settings: BackendSettings;
  dialect: Dialect;
  /** The name that the engine knows the model by. */
  model: string;
  endpoints: Endpoint[];
  /** Names and values that every request to it carries. */
  authHeaders: readonly string[];
  line: WaitingLine;
  /** Of a backend that is served by a host of ours; shared by all snapshots. */
  host: HostState | undefined;
}

export interface Target {
  name: string;
  weight: number;
  /** Grows with how late it came among the targets of its route; see TargetAges. */
  since?: number;
  backend: Backend;
}

export interface Shadow {
  backend: Backend;
  /** How many of a hundred requests are copied. */
  percent: number;
  /** How its answers are compared with those of callers; undefined where they are thrown away. */
  compare?: CompareSettings | undefined;
  /** The release that the copies are made for. */
  release?: string | undefined;
}

export interface Route {
  name: string;
  /** Where it is a pipeline: it has no targets, its stages' routes do. */
  pipeline: PipelineSettings | undefined;
  settings: RouteSettings;
  /** Targets of weight above 0 that speak each protocol. */
  targets: Record<Dialect['protocol'], Target[]>;
  /** What chooses among tiers of targets; undefined where nothing does. */
  tiers: RouteTiers | undefined;
  /** Whether it is remembered where its sessions were answered. */
  remembers: boolean;
  retries: RetryBudget;
  /** What it does with answers beyond giving each to who asked; undefined for nothing. */
  answers: AnswerRules | undefined;
  /** Where texts of its requests become tokens before they go to an engine. */
  prepare: PrepareRules | undefined;
  /** Requests of this route that wait now, whatever for; shared by all snapshots. */
  waiting: Displacement<Yielder>;
  /** Where second attempts may run beside the first. */
  hedges: HedgeBudget | undefined;
  /** Under way for it; undefined where none is. */
  release: RouteRelease | undefined;
  /** The canary of the release before, where that was rolled back. */
  takenBack: string | undefined;
  /** Where copies of its requests go; undefined for nowhere. */
  shadows: readonly Shadow[] | undefined;
  /** Where what its backends answer is watched for drift. Shared by all snapshots. */
  drift: RouteDrift | undefined;
  /** Where its ladder has a rung of shorter answers. */
  hold: LadderHold | undefined;
  /** How long its answers take. Shared by all snapshots. */
  times: UsualTimes;
  /** Tokens that its answers have had lately, a moving mean; undefined before the first. Shared by all snapshots. */
  usualOut: { value: number | undefined; answers: number };
}

/** The value that a request's time follows from. */
export function deadlineSetting({ name, pipeline }: Route): string {
  return `${pipeline ? 'pipelines' : 'routes'}.${name}.deadline`;
}
