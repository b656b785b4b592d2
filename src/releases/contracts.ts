import type { Evidence } from '../events/contracts.ts';

export type { Arm, ArmEvidence, Evidence, EvidencePair } from '../events/contracts.ts';
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
