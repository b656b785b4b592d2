import type { StressSettings } from '../config/schema/index.ts';
import type { Evidence } from '../events/contracts.ts';

export type { ArmEvidence, Evidence } from '../events/contracts.ts';
export { MARKS } from '../events/contracts.ts';
export type { ReleaseArms } from '../links/messages.ts';

/** Where a release stands. Each phase has a deadline, and ways out by evidence, by an operator and by that deadline. */
export type Phase =
  /** What the release needs before a caller may meet it is being shown: parity, the stress gate, paired answers. */
  | 'gates'
  /** Copies of requests go to the canary, and its answers are compared with those that callers got. */
  | 'shadow'
  /** The canary answers a share of the sessions. */
  | 'canary'
  /** It has all of the traffic; what it replaced still stands by. */
  | 'promoted'
  | 'rolled-back';

/** What a machine that runs a release wants done; see CanaryMachine. Each carries the reason that it is done for. */
export type Action = {
  reason: { code: string; figures: Record<string, number | string | boolean | null> };
  /** Events that it follows from, the newest last: evidence, a gate. */
  causes: string[];
} & (
  | { do: 'share'; share: number }
  | { do: 'freeze'; edges: import('../links/messages.ts').ReleaseArms['edges'] }
  | { do: 'promote' }
  | { do: 'roll-back' }
  | { do: 'hold' }
);

/** Evidence as the ledger has it: the event that told of it is what a verdict follows from. */
export interface StoredEvidence {
  event: string;
  evidence: Evidence;
}

/** A release as a gate sees it. */
export interface GateAsked {
  release: string;
  route: string;
  /** The canary. */
  backend: string;
  /** The load that it has to stand, where the release has any. */
  stress?: StressSettings;
}

/** What a canary has to pass before a caller may meet it, such as a load test, or a certificate of parity. */
export interface Gate {
  /** Such as `stress` or `parity`. */
  name: string;
  /** Whether this release has to pass it, as the settings are now. */
  applies(asked: GateAsked): boolean;
  /**
   * Finds out, which may take minutes; stops when the signal ends it. One that rejects is asked again after a while, until
   * the release's deadline.
   */
  pass(asked: GateAsked, signal: AbortSignal): Promise<GateVerdict>;
}

export interface GateVerdict {
  passed: boolean;
  reason: Action['reason'];
  /** The event that tells of it. */
  event: string;
}
