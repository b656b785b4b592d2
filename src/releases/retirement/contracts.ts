/** What is retired: a backend, a route, or a version of the registry. */
export interface Subject {
  kind: 'backend' | 'route' | 'version';
  /** `NAME`; of a version `MODEL@NUMBER`. */
  name: string;
}

/** A tenant that has called it. */
export interface Caller {
  tenant: string;
  requests: number;
  /** ISO 8601. */
  lastAt: string;
  /** The id of its last request that has a record; absent where only counts are known. */
  lastRequest?: string;
}

/** A place that names it. */
export interface Reference {
  path: string;
  /** It has to be taken out first: nothing here can be drained of it. */
  blocks: boolean;
  why: string;
}

/** What retiring something would do, shown before anything is done. */
export interface RetirementPlan {
  subject: Subject;
  callers: Caller[];
  /** What the callers were looked for in: events of the ledger since then; `complete`: all of them. */
  looked: { since: string; events: number; complete: boolean };
  references: Reference[];
  /** Routes whose targets change, with the targets as they are. */
  drains: Record<string, { backend: string; weight: number }[]>;
  /** Live keys of tenants that may call this route and nothing else: revoked by the last step. */
  keys: { id: string; tenant: string }[];
  /** What is done, in order. */
  steps: string[];
  /** Why it cannot be begun; empty where it can. */
  blockers: string[];
}

/**
 * Where one stands: its requests end; it is watched whether anybody still calls it; nobody did for as long as was asked; the
 * last step is being made, or is. Until then it can be undone.
 */
export type RetirementState = 'draining' | 'watching' | 'proven' | 'finishing' | 'finished' | 'undone';

/** The kind of the documents that retirements are kept as. */
export const RETIREMENT_KIND = 'retirement';

/** A retirement as it is kept: another control goes on where this one was. */
export interface RetirementDocument {
  subject: Subject;
  state: RetirementState;
  startedBy: string;
  /** ISO 8601. */
  startedAt: string;
  /** Milliseconds without a call after which it counts as proven that nobody calls it. */
  watchMs: number;
  plan: RetirementPlan;
  /** Calls that are older, in milliseconds since the epoch, had begun before it was drained. */
  drainedMs?: number;
  exported?: { folder: string; events: number; bytes: number; sha256: string };
  /** Events of the ledger up to here have been looked at. */
  position?: number;
  /** Since when nobody was seen to call it, milliseconds since the epoch. */
  quietSinceMs?: number;
  calls: number;
  lastCall?: Caller;
  finished?: { at: string; keys: string[]; archived: boolean };
  /** The newest event that tells of it. */
  newest: string;
}
