import type { ErrorCode } from '../kernel/errors.ts';
import type { Priority } from '../kernel/priorities.ts';

/** A fact in the ledger, as the API, `armature events` and `why` show it. */
export interface LedgerEvent {
  id: string;
  /** ISO 8601, milliseconds, UTC. */
  at: string;
  /** noun-verb, such as `request-refused`, `configuration-changed`, `worker-died`. */
  type: string;
  /** What it is about: `request`, `route:chat`, `endpoint:b1|http://...`, `worker:0`, `configuration`. */
  subject: string;
  /** Who did it: `armature`, `tenant:web`, `operator`, `file:armature.yaml`. */
  actor: string;
  /** Ids of the events it follows from. */
  causes: string[];
  data: Record<string, unknown>;
}

export type Figure = number | string | boolean | null;

/** One step of a decision. Put into words only when it is read. */
export interface Step {
  /** Milliseconds since the request came. */
  at: number;
  what: 'identify' | 'parse' | 'admit' | 'wait' | 'plan' | 'attempt' | 'rung' | 'stage' | 'answer';
  /** The stage of a pipeline that it belongs to. */
  stage?: string;
  /** A code of the reason, such as `target-by-weight`, `queue-full`, `connection-refused`. */
  code: string;
  figures: Record<string, Figure>;
  /** Name and version of the policy that decided, such as `routing@1`. */
  policy?: string;
  /** What the policy read, in full: with `draws` and the policy's version enough to replay it. */
  input?: unknown;
  /** Every random number that the policy drew, in order. */
  draws?: number[];
  /** The path of the configuration value that mattered most, such as `routes.chat.queue.max`. */
  setting?: string;
  /** Events that it follows from, such as the one that fenced an endpoint. */
  causes?: string[];
}

export type Outcome = 'ok' | 'degraded' | 'refused' | 'failed' | 'aborted' | 'invalid';

/** What was decided for one request, and on which grounds. */
export interface RequestRecord {
  id: string;
  /** The caller's own x-request-id, where it sent one. */
  requestId?: string;
  /** Milliseconds since the epoch at which it came. */
  wallMs: number;
  tenant: string;
  route: string;
  priority: Priority;
  /** The call, such as `chat`, `embeddings`, `infer`. */
  call: string;
  stream: boolean;
  outcome: Outcome;
  /** The code of the error, where it ended in one. */
  code?: ErrorCode;
  status: number;
  backend?: string;
  endpoint?: string;
  rung?: string;
  durationMs: number;
  firstContentMs?: number;
  tokensIn?: number;
  tokensOut?: number;
  attempts: number;
  traceId?: string;
  /** Number of the snapshot that it was decided on, and the event that published it. */
  snapshot: number;
  snapshotEvent: string;
  steps: Step[];
}

/** What workers tell control. */
export type Fact =
  | { kind: 'request'; record: RequestRecord }
  /** Requests of one kind in one second beyond the rate of full records. */
  | {
      kind: 'group';
      second: number;
      route: string;
      tenant: string;
      reason: string;
      count: number;
      example: string;
    }
  | { kind: 'event'; event: LedgerEvent }
  | { kind: 'evidence'; evidence: Evidence };

/**
 * Sessions of a route under release fall into three arms: those that the canary answers, as many that stable answers and
 * that the canary is compared with, and the rest.
 */
export type Arm = 'canary' | 'baseline' | 'stable';

/** What can be marked of a session's request, as bits. */
export const MARKS = {
  /** It was not answered in full by its arm, and not for a reason of the caller's. */
  failed: 1,
  /** It took longer than the frozen p95, or p99, of stable requests of its size. */
  slowP95: 2,
  slowP99: 4,
  /** It cost more than the frozen p95 of stable requests. */
  dearP95: 8,
  /** Its engine answered that the request is at fault (400, 404, 413, 422 and their like): no failure, unless one arm says so more often. */
  refused: 16,
} as const;

/**
 * What one worker saw of a route under release in a few seconds, on one snapshot. The unit is the session; where a request
 * belongs to none, the request. Sessions are told as 32 bits of a hash that has nothing to do with the choice of the arm.
 */
export interface Evidence {
  release: string;
  route: string;
  worker: number;
  snapshot: number;
  /** The share of sessions that belonged to the canary, 0 to 1. */
  share: number;
  /** Milliseconds since the epoch. */
  fromMs: number;
  toMs: number;
  arms: Record<Arm, ArmEvidence>;
  /** Sessions of canary and baseline that this worker had not seen before in this release: hash, arm (0 canary, 1 baseline), marks of that first request as bits. */
  firsts: [session: number, arm: 0 | 1, marks: number][];
  /**
   * Sessions of which a request was marked: hash, arm (2 stable), marks as bits. Each session and mark once in a batch. Of
   * stable `failed` alone: what is slow or dear is compared between canary and baseline.
   */
  marks: [session: number, arm: 0 | 1 | 2, marks: number][];
  /** Sessions are told here whose hash is at or below these: below 2^32 where there were more than a batch takes. */
  firstsBelow: number;
  marksBelow: number;
  /** Answers of the canary to copies, against those that the callers got. */
  pairs: EvidencePair[];
  /** Copies that were not compared, by cause. */
  skipped: Record<string, number>;
}

export interface ArmEvidence {
  requests: number;
  failed: number;
  tokensIn: number;
  tokensOut: number;
  /** By price, where the backend has one; tokens of answers elsewhere. */
  cost: number;
  /** Milliseconds to the first content of streams, to the answer elsewhere, by size class: buckets of `timeBucket`, and counts. */
  times: Record<string, [bucket: number, count: number][]>;
  /** Cost of a request: buckets of `costBucket`, and counts. */
  costs: [bucket: number, count: number][];
}

export interface EvidencePair {
  session: number;
  request: string;
  /** How much worse the canary's answer is, -1 to 1; 0 is as good. */
  difference: number;
  /** What was compared, such as `exact`, `structured`, `numeric`, `embedding`, `judge`. */
  by: string;
}
