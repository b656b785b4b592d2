import type { Action, Phase, ReleaseArms } from '../contracts.ts';
import type { BookState } from './book.ts';
import type { ReleasePlan } from './contracts.ts';
import type { WatchBase } from './watch.ts';

/** Where a release stands, apart from its evidence. */
export interface Standing {
  beganMs: number;
  phase: Phase;
  phaseSinceMs: number;
  /** Index of the step of the plan; -1 before the first. */
  step: number;
  stepSinceMs: number;
  /** How many sessions the canary had met when the step began. */
  stepSessionsBefore: number;
  share: number;
  edges?: ReleaseArms['edges'];
  /** Times say something of the canary from then on. */
  settledMs?: number;
  /** What was given to be carried out and is not done. */
  intent?: Action;
  /** The hold that was told last. */
  held?: { code: string; atMs: number };
  last?: Action['reason'];
  gates: Record<string, 'open' | 'passed' | 'failed'>;
  gateEvents: string[];
  /** The first event that told something that cannot be, and which member. */
  broken?: { event: string; member: string };
  /** Sessions were seen not to fall into the arms by the share. */
  skewed?: { event: string; e: number };
  /** The last events of evidence in which the canary had requests, the newest last. */
  recent: string[];
  /** An operator's word that was not carried out yet. */
  word?: 'abort' | 'promote';
  /** Since it was promoted. */
  watch?: { sinceMs: number; base: WatchBase };
  ended: boolean;
}

/** As JSON, whole: a machine that is restored from it goes on exactly where this one was. */
export interface CanaryState {
  /** Of this shape; a later shape has another number. */
  shape: 1;
  plan: ReleasePlan;
  standing: Standing;
  book: BookState;
}

export function standingAtStart(plan: ReleasePlan, nowMs: number): Standing {
  return {
    beganMs: nowMs,
    phase: 'gates',
    phaseSinceMs: nowMs,
    step: -1,
    stepSinceMs: nowMs,
    stepSessionsBefore: 0,
    share: 0,
    gates: Object.fromEntries(plan.gates.map((gate) => [gate, 'open'])),
    gateEvents: [],
    recent: [],
    ended: false,
  };
}

/** When the phase is rolled back unless it has ended: milliseconds since the epoch; undefined once nothing is due any more. */
export function phaseEndsMs(
  plan: ReleasePlan,
  { phase, phaseSinceMs, beganMs }: Standing,
): number | undefined {
  if (phase === 'promoted' || phase === 'rolled-back') return undefined;
  const own = plan.phaseMs?.[phase];
  const all = beganMs + plan.deadlineMs;
  return own === undefined ? all : Math.min(all, phaseSinceMs + own);
}
