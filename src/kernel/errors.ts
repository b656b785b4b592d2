/** How far a request had come when it failed: it tells a caller whether work may have been done. */
export type Phase = 'before-queue' | 'queued' | 'sent' | 'committed';

interface ErrorKind {
  status: number;
  /** OpenAI's `error.type`. */
  type: string;
  /** Whether the same request may succeed later, unchanged. */
  retryable: boolean;
  /** One sentence for the error reference. */
  meaning: string;
}

/** Every error a caller can get. docs/errors.md is made from this table, and a test holds them together. */
export const ERRORS = {
  invalid_request: {
    status: 400,
    type: 'invalid_request_error',
    retryable: false,
    meaning: 'The request cannot be read, or asks for something that does not exist.',
  },
  unauthorized: {
    status: 401,
    type: 'authentication_error',
    retryable: false,
    meaning: 'No key, or a key that is unknown or revoked.',
  },
  forbidden: {
    status: 403,
    type: 'permission_error',
    retryable: false,
    meaning: 'The key is good, but the route is not one its tenant may call.',
  },
  unknown_route: {
    status: 404,
    type: 'invalid_request_error',
    retryable: false,
    meaning: 'No route has the name given as `model`.',
  },
  not_found: {
    status: 404,
    type: 'invalid_request_error',
    retryable: false,
    meaning: 'No such path, method on it, or stored object.',
  },
  conflict: {
    status: 409,
    type: 'invalid_request_error',
    retryable: true,
    meaning: 'The object was changed by somebody else at the same moment.',
  },
  body_too_large: {
    status: 413,
    type: 'invalid_request_error',
    retryable: false,
    meaning: 'The body is larger than `gateway.bodyBytesMax`.',
  },
  quota_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    meaning: "The tenant's own limit is used up; `retry-after` says when to come again.",
  },
  overloaded: {
    status: 503,
    type: 'overloaded_error',
    retryable: true,
    meaning: 'There is no room to serve this in time; `retry-after` says when to come again.',
  },
  draining: {
    status: 503,
    type: 'overloaded_error',
    retryable: true,
    meaning: 'This gateway is shutting down; another one, or the next one, will answer.',
  },
  backend_unavailable: {
    status: 502,
    type: 'api_error',
    retryable: true,
    meaning: 'No endpoint of the route could be reached.',
  },
  backend_error: {
    status: 502,
    type: 'api_error',
    retryable: true,
    meaning: 'The engine failed, or answered something that is no answer.',
  },
  deadline_exceeded: {
    status: 504,
    type: 'timeout_error',
    retryable: true,
    meaning: 'No answer within the deadline.',
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

/** Why a request is refused or has failed, as the caller is told. */
export interface Failure {
  code: ErrorCode;
  message: string;
  phase: Phase;
  /** An engine's own status where it is kept (400, 404, 409, 413, 415, 422, 429); otherwise that of the code. */
  status?: number;
  /** The member of the request that is wrong. */
  param?: string;
  /** Whole seconds, 1 or more; always present on 429 and 503. */
  retryAfterSeconds?: number;
  /** Methods that are allowed, where the one used is not. */
  allow?: string;
  /** False where an SDK's own retry can only add load or fail again; absent, it is as its kind says. */
  shouldRetry?: boolean;
}

/** A request that is the caller's to mend: sent again as it is it would only fail again. */
export function invalidRequest(message: string, param?: string): Failure {
  return {
    code: 'invalid_request',
    message,
    phase: 'before-queue',
    shouldRetry: false,
    ...(param === undefined ? {} : { param }),
  };
}
