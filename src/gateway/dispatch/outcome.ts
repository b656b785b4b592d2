import type { Dialect } from '../../backends/contracts.ts';
import type { Failure } from '../../kernel/errors.ts';
import { engineMessage } from '../../protocols/openai/errors.ts';
import type { TransportError, UpstreamHeaders } from '../contracts.ts';
import { retryAfterMs } from './retry-after.ts';

/** Why an attempt gave no answer, and what follows from it. */
export interface AttemptFailure {
  /** Code of the reason, such as `connection-refused`. */
  code: string;
  /** What the engine answered, where it did. */
  status?: number;
  /** Nothing reached the engine: another endpoint costs no budget. */
  unsent: boolean;
  /** A reused connection died before one byte of answer: a fresh one costs no budget. */
  stale: boolean;
  /** Whether another attempt could fare better. */
  retryable: boolean;
  /** How the endpoint is judged. A caller's own mistake counts against nobody. */
  counts: boolean;
  /** The endpoint asked to be left alone for so long. */
  coolMs?: number;
  /** The engine's answer is the caller's, kept as it is. */
  kept?: { status: number; headers: UpstreamHeaders; body: Buffer };
  failure: Failure;
}

/** Statuses that tell the caller what is wrong with its request. */
const KEPT_STATUSES = new Set([400, 404, 409, 413, 415, 422]);
/** Statuses by which an engine asks to be left alone for a while. */
const COOL_STATUSES = new Set([408, 425, 429, 503, 529]);
/** How long, where it does not say. */
const COOL_MS_DEFAULT = 1_000;
/** One that refuses, and says that it may be asked at once, is given a moment all the same. */
const COOL_MS_MIN = 100;

export function fromTransport(error: TransportError, backend: string): AttemptFailure {
  const code = {
    refused: 'connection-refused',
    'connect-timeout': 'connect-timeout',
    reset: 'connection-lost',
    protocol: 'not-http',
    tls: 'tls-failed',
    closed: 'connection-lost',
  }[error.kind];
  const reached = !error.unsent;
  return {
    code: error.stale ? 'stale-connection' : code,
    unsent: error.unsent,
    stale: error.stale,
    retryable: true,
    counts: !error.stale,
    failure: {
      code: reached ? 'backend_error' : 'backend_unavailable',
      message: reached
        ? `The backend '${backend}' broke off before its answer was whole.`
        : `No endpoint of the backend '${backend}' could be reached.`,
      phase: reached ? 'sent' : 'before-queue',
    },
  };
}

/** What an engine's status other than success means. */
export function fromStatus(
  status: number,
  headers: UpstreamHeaders,
  body: Buffer,
  backend: string,
  dialect: Pick<Dialect, 'badInputStatuses' | 'badInputMessage'> = {},
  wallMs = 0,
): AttemptFailure {
  const base = { status, unsent: false, stale: false, retryable: false, counts: false };
  if (KEPT_STATUSES.has(status) || blamesInput(dialect, status, body)) {
    const kept = status >= 500 ? 400 : status;
    const code =
      kept === 404
        ? 'not_found'
        : kept === 409
          ? 'conflict'
          : kept === 413
            ? 'body_too_large'
            : 'invalid_request';
    const message = engineMessage(body) ?? `The engine refused the request with status ${status}.`;
    return {
      ...base,
      code: 'engine-refused',
      kept: { status: kept, headers, body },
      failure: { code, message, phase: 'sent', status: kept, shouldRetry: false },
    };
  }
  if (COOL_STATUSES.has(status)) {
    const coolMs = Math.max(COOL_MS_MIN, retryAfterMs(headers, wallMs) ?? COOL_MS_DEFAULT);
    return {
      ...base,
      code: 'engine-busy',
      retryable: true,
      coolMs,
      failure: {
        code: 'overloaded',
        message: `The backend '${backend}' is busy (it answered ${status}).`,
        phase: 'sent',
      },
    };
  }
  if (status === 401 || status === 403) {
    const message = `The backend '${backend}' refused Armature's own credentials. Its operator has to mend the configuration.`;
    return {
      ...base,
      code: 'credentials-refused',
      failure: { code: 'backend_error', message, phase: 'sent', shouldRetry: false },
    };
  }
  const retryable = status >= 500;
  const message = `The backend '${backend}' failed with status ${status}.`;
  return {
    ...base,
    code: 'engine-failed',
    retryable,
    counts: retryable,
    failure: { code: 'backend_error', message, phase: 'sent' },
  };
}

/** Whether this engine means the caller's input by a status that says otherwise. */
function blamesInput(
  { badInputStatuses, badInputMessage }: Pick<Dialect, 'badInputStatuses' | 'badInputMessage'>,
  status: number,
  body: Buffer,
): boolean {
  if (badInputStatuses?.includes(status)) return true;
  return status >= 500 && badInputMessage !== undefined && badInputMessage.test(engineMessage(body) ?? '');
}

/** An answer of status 200, whole or streamed, that says what is wrong instead of answering. */
export function fromErrorText(text: string, backend: string): AttemptFailure {
  const status = statusIn(text);
  if (status !== undefined && KEPT_STATUSES.has(status)) {
    return fromStatus(status, {}, Buffer.from(text), backend);
  }
  return fromBrokenAnswer('error-event', `The backend '${backend}' failed before its first word.`);
}

/** A status among the members of an engine's error, wherever engines put it. */
function statusIn(text: string): number | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // words alone: an error without a status
  }
  const places = [value, (value as { error?: unknown } | null)?.error];
  for (const place of places) {
    if (typeof place !== 'object' || place === null) continue;
    const { code, status } = place as { code?: unknown; status?: unknown };
    const found = [code, status].find((each) => typeof each === 'number');
    if (found !== undefined) return found as number;
  }
  return undefined;
}

/** The engine ran out of the time it is given; `limit` names the setting. */
export function fromTimeout(
  limit: 'firstByte' | 'idle' | 'total',
  ms: number,
  backend: string,
): AttemptFailure {
  return {
    code: { firstByte: 'first-byte-timeout', idle: 'idle-timeout', total: 'total-timeout' }[limit],
    unsent: false,
    stale: false,
    retryable: true,
    counts: true,
    failure: {
      code: 'deadline_exceeded',
      message: `The backend '${backend}' gave no answer within its ${limit} timeout of ${ms} ms.`,
      phase: 'sent',
    },
  };
}

/** The answer began well and ended too early, or is no answer. */
export function fromBrokenAnswer(code: string, message: string): AttemptFailure {
  return {
    code,
    unsent: false,
    stale: false,
    retryable: true,
    counts: true,
    failure: { code: 'backend_error', message, phase: 'sent' },
  };
}
