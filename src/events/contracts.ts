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
  | { kind: 'event'; event: LedgerEvent };
