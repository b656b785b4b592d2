import type { Arm } from '../../events/contracts.ts';
import type { ReleaseArms } from '../../links/messages.ts';
import type { Action, Phase } from '../contracts.ts';

/** What a release may have to be certified in. */
export type Metric = 'errors' | 'latency' | 'cost' | 'quality';

/** What a release was started with; it does not change while it runs. */
export interface ReleasePlan {
  /** `rel_...` */
  id: string;
  route: string;
  /** The backend that is released. */
  canary: string;
  /** What it needs before a caller may meet it, such as `parity` or `stress`: told by `gate`. May be empty. */
  gates: string[];
  /** Percent of requests that are copied before callers meet it, and pairs of answers that are needed then; absent: none. */
  shadow?: { percent: number; pairsMin: number };
  /** Percent of the sessions, rising, the last 100; `auto`: raised when the next worse ratio is ruled out. */
  plan: number[] | 'auto';
  step: { sessionsMin: number; timeMinMs: number };
  /** Milliseconds from the start until it is promoted or rolled back, and for each phase alone where that is less. */
  deadlineMs: number;
  phaseMs?: { gates?: number | undefined; shadow?: number | undefined; canary?: number | undefined };
  /** Milliseconds for which a promoted backend is watched. */
  watchMs: number;
  /** The chance of a false abort in the life of the release; and of each false certificate. */
  alpha: number;
  /** The canary is certified to fail, or be slow or dear, less than so many times as often; above 1. */
  ratioMax: number;
  /** The absolute bound on its failures, as a share of sessions' first requests, 0 to 1. */
  errorRateMax: number;
  /** How much worse its answers may be on average, 0 to 0.5; of the metric `quality`. */
  qualityMargin: number;
  /** What has to be certified. `errors` always is. */
  metrics: Metric[];
}

/** Why a release stands where it stands: each is a code with a sentence in events/reasons.ts. */
export type HoldCode =
  /** A gate has not been passed yet. */
  | 'release-gates-open'
  /** Too few requests of stable were seen to say what is slow. */
  | 'release-edges-wanting'
  /** Too few answers of the canary were compared. */
  | 'release-pairs-wanting'
  /** The step has not lasted as long, or met as many sessions, as the plan says. */
  | 'release-step-unripe'
  /** Evidence leans against the canary, and does not suffice for an abort. */
  | 'release-evidence-leans'
  /** Not all certificates are there. */
  | 'release-certificates-wanting'
  /** A worker told a figure that cannot be: nothing is concluded in favour of the canary any more. */
  | 'release-evidence-broken'
  /** Sessions do not fall into the arms by the share: nothing is concluded in favour of the canary any more. */
  | 'release-arms-skewed';

export interface MetricReport {
  metric: Metric;
  /** Evidence of harm, as an e-value: an abort is due at `abortAt`. */
  abort: number;
  abortAt: number;
  /** Evidence that it does no harm, as an e-value: certified at `certifyAt`. */
  certificate: number;
  certifyAt: number;
  certified: boolean;
  /** Sessions marked (failed, slow, dear) in the canary, and in what it is compared with; pairs, for quality. */
  canary: number;
  others: number;
}

export interface ArmReport {
  requests: number;
  failed: number;
  tokensIn: number;
  tokensOut: number;
  cost: number;
  /**
   * By size class: how many, milliseconds, and how far the shares below those may be off (0.5, 0.95, 0.99), were requests
   * independent. No verdict goes by these.
   */
  times: Record<string, { count: number; p50: number; p95: number; p99: number; within: number }>;
}

/** How a release stands, for people and consoles. */
export interface ReleaseReport {
  phase: Phase;
  /** The number of the step of the plan, from 1, of how many; 0 before the first. */
  step: number;
  steps: number;
  /** 0 to 1. */
  share: number;
  /** When the phase, and all of the release, are rolled back unless they have ended: milliseconds since the epoch. Absent once they cannot. */
  phaseEndsMs?: number;
  endsMs?: number;
  /** A promoted backend is watched until then. */
  watchedUntilMs?: number;
  /** It is over: nothing more will come of it. */
  ended: boolean;
  /** What it waits for now. */
  waitsFor?: Action['reason'];
  /** What it did last, and why. */
  last?: Action['reason'];
  metrics: MetricReport[];
  /** Evidence that sessions do not fall into the arms by the share, as an e-value; the verdict is frozen at `frozenAt`. */
  assignment: { e: number; frozenAt: number; canary: number; baseline: number };
  arms: Record<Arm, ArmReport>;
  edges?: ReleaseArms['edges'];
  /** Sessions that the canary has met at this step, and in all. */
  sessions: { step: number; all: number };
  pairs: number;
  skipped: Record<string, number>;
  gates: Record<string, 'open' | 'passed' | 'failed'>;
  /** Stable itself fails so often that the canary is judged by absolute bounds. */
  stableBroken: boolean;
}
