import type { LoadedConfig } from '../../config/load.ts';
import type { Redirect, Target } from '../../config/redirect.ts';
import type { Settings, StressSettings } from '../../config/schema/index.ts';
import type { Snapshot } from '../../links/messages.ts';
import type { ReleasePlan, ReleaseReport } from '../../releases/canary/contracts.ts';
import type { CanaryMachine, CanaryState } from '../../releases/canary/machine.ts';
import type { Action, ReleaseArms } from '../../releases/contracts.ts';
import type { Gateways } from '../gateways.ts';

/** What a release needs of control. */
export interface ReleaseControl {
  readonly effective: { settings: Settings; files: LoadedConfig };
  readonly snapshots: { current: Snapshot };
  readonly health: { known: Record<string, 'well' | 'unwell'> };
  readonly idle: { wake(backend: string, cause: string, release?: string): void };
  readonly gateways: Pick<Gateways, 'peers' | 'ask'>;
  /** Puts a route's targets over what is said of them, and publishes; see Changes.redirect. */
  redirect(wanted: Omit<Redirect, 'at' | 'event'>, causes: string[]): Promise<void>;
  /** Publishes what has changed beside the configuration; resolves when it is published. */
  renewSnapshot(causes: string[]): Promise<void>;
}

/** What runs a release: the machine of the canary. */
export type ReleaseMachine = Pick<
  CanaryMachine,
  'state' | 'phase' | 'ended' | 'evidence' | 'gate' | 'advance' | 'done' | 'abort' | 'promote' | 'report'
>;

export interface ReleaseMachines {
  begin(plan: ReleasePlan, nowMs: number): ReleaseMachine;
  /** The state is copied. Throws where it cannot be read. */
  restore(state: CanaryState): ReleaseMachine;
}

/** The kind of the documents that releases are kept as. */
export const RELEASE_KIND = 'release';

/** A release as it is kept: with it, and what the ledger has after `position`, another control goes on where this one was. */
export interface ReleaseDocument {
  route: string;
  to: string;
  baseline?: string;
  startedBy: string;
  /** ISO 8601. */
  startedAt: string;
  /** `release-started` */
  started: string;
  plan: ReleasePlan;
  /** How many of a hundred requests are copied, and how answers are compared, while that is its phase. */
  shadow?: ReleaseArms['shadow'];
  /** The load that it has to stand first. */
  stress?: StressSettings;
  /** The route's targets as they were when it began: what a rollback restores. */
  captured: Target[];
  /** What the files said of them then, as it is written. */
  written?: unknown;
  /** Evidence of the ledger up to here is in the machine. */
  position: number;
  /** Absent once it has ended. */
  machine?: CanaryState;
  /** What was carried out last: the share of the canary, 0 to 1, and what requests of stable need. */
  share: number;
  edges?: Extract<Action, { do: 'freeze' }>['edges'];
  /** What is being carried out: decided, and not known to be done. */
  intent?: Intent;
  /** Why the weights of the release are not in force: the files were edited. */
  overtaken?: { code: string; event: string };
  /** The newest event that tells of it. */
  newest: string;
  ended?: {
    at: string;
    how: 'promoted' | 'rolled-back';
    event: string;
    reason: Action['reason'];
    report: ReleaseReport;
    /** Why the targets of the file stay, where a rollback did not put back what was captured. */
    left?: string;
  };
}

export interface Intent {
  action: Action;
  /** `armature`, or who gave the word. */
  actor: string;
  /** `release-decided` */
  event: string;
}
