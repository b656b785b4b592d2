import type { Priority } from '../kernel/priorities.ts';

/** One request as it comes to a simulated gateway. */
export interface Arrival {
  /** Milliseconds after the start. */
  atMs: number;
  route: string;
  kind: 'chat' | 'embeddings';
  /** 1 or more. */
  promptTokens: number;
  /** Tokens that the model says; 1 or more for a chat. */
  outputTokens: number;
  stream: boolean;
  /** What the caller asks for as `max_tokens`; undefined where it does not say. */
  outputTokensMax: number | undefined;
  /** Undefined: the open tenant, or where tenants are configured the first. */
  tenant: string | undefined;
  priority: Priority | undefined;
  deadlineMs: number | undefined;
  session: string | undefined;
  /** Requests of one subject are the same to the byte, at temperature 0: what caches are for. Undefined: unlike any other. */
  subject?: number;
  /** The caller leaves so many milliseconds after it came, if it has no answer by then. */
  leavesAfterMs: number | undefined;
}

/** How one request ended, as its caller sees it. Times are milliseconds of the simulated clock. */
export interface Answered {
  arrival: Arrival;
  startedAt: number;
  /** When the first content came; the whole answer where it came in one piece. */
  firstAt: number | undefined;
  endedAt: number;
  status: number;
  /** The answer was cut off, or ended with an error event. */
  broken: boolean;
  /** The caller left before its answer was whole. */
  left: boolean;
  /** The rung that answered. */
  degraded: string | undefined;
  /** The error's code. */
  code: string | undefined;
  retryAfterSeconds: number | undefined;
}

/** A change of the world in the middle of a simulation. */
export interface Disturbance {
  atMs: number;
  run(): void;
}
