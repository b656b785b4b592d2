import type { Action, StoredEvidence } from '../contracts.ts';
import type { ReleasePlan, ReleaseReport } from './contracts.ts';

/** As JSON, whole: a machine that is restored from it goes on exactly where this one was. */
export interface CanaryState {
  plan: ReleasePlan;
  beganMs: number;
}

/**
 * Runs one release: evidence and time go in, actions with their reasons come out. It does no I/O and draws no chance, so that
 * the same evidence at the same times gives the same actions, live, after a restart and in simulation.
 */
export interface CanaryMachineLike {
  readonly state: CanaryState;
  /** Takes in what a worker saw, once for each event of the ledger, in their order. */
  evidence(stored: StoredEvidence, nowMs: number): void;
  /** A gate of the plan has been passed, or not: then the release is rolled back. `event` tells of it. */
  gate(name: string, passed: boolean, event: string, nowMs: number): void;
  /**
   * What is to be done now. One that changes anything is given again at each call until `done` says that it was carried out,
   * or another takes its place (a rollback does). `hold` is told once, and asks for nothing. `causes`, in each: the events
   * that it follows from. To be called after evidence, and every second or so.
   */
  advance(nowMs: number): Action[];
  /** The action was carried out. */
  done(action: Action, nowMs: number): void;
  /** An operator's word: false where nothing is in progress, and then nothing happens. Abort wins over everything. */
  abort(nowMs: number): boolean;
  promote(nowMs: number): boolean;
  report(nowMs: number): ReleaseReport;
}

/** `CanaryMachine.begin(plan, nowMs)` and `CanaryMachine.restore(state)` give one. */
export interface CanaryMachines {
  begin(plan: ReleasePlan, nowMs: number): CanaryMachineLike;
  restore(state: CanaryState): CanaryMachineLike;
}
