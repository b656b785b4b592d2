/** What a host tells a caller that it cannot serve; the listener puts it into the words of the caller's protocol. */
export class HostFault extends Error {
  readonly status: number;
  /** OpenAI's `error.type` and `error.code`. */
  readonly type: string;
  readonly code: string | null;
  /** The member of the request that is wrong. */
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    status: number,
    message: string,
    more: { type?: string; code?: string; param?: string; retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.name = 'HostFault';
    this.status = status;
    this.type = more.type ?? (status < 500 ? 'invalid_request_error' : 'api_error');
    this.code = more.code ?? null;
    this.param = more.param ?? null;
    this.retryAfterSeconds = more.retryAfterSeconds;
  }

  /** OpenAI's error object. */
  toOpenAI(): { error: { message: string; type: string; param: string | null; code: string | null } } {
    return { error: { message: this.message, type: this.type, param: this.param, code: this.code } };
  }
}

/** The request asks for something wrong, or for something that this host has not. */
export function badRequest(message: string, param?: string, code?: string): HostFault {
  return new HostFault(400, message, { ...(param && { param }), ...(code && { code }) });
}

/** In OpenAI's own words. */
export function unknownParameter(name: string): HostFault {
  return badRequest(`Unknown parameter: '${name}'.`, name, 'unknown_parameter');
}

/** More requests wait than may. */
export function tooBusy(waitingMax: number): HostFault {
  return new HostFault(503, `${waitingMax} requests wait already: come again`, {
    type: 'overloaded_error',
    code: 'overloaded',
    retryAfterSeconds: 1,
  });
}
