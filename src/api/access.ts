import { createHash, timingSafeEqual } from 'node:crypto';
import type { ErrorCode } from '../kernel/errors.ts';
import { isLoopback } from '../kernel/listen-address.ts';

/** Who may do what at the admin listener. */

export type Role = 'admin' | 'viewer';

export interface AccessSettings {
  /** The host of `admin.listen`, such as `127.0.0.1` or `[::1]`. */
  listenHost: string;
  /** Of the configuration; with one or more, every request needs a token. */
  tokens: readonly { name: string; hash: string; role: Role }[];
  /** The token in the data directory: whoever can read it is this user, and an admin. */
  localToken: string;
}

/** What a request is judged by. */
export interface Knock {
  method: string;
  host: string | undefined;
  origin: string | undefined;
  authorization: string | undefined;
}

/** Why a request is not taken. */
export interface Refusal {
  status: number;
  code: ErrorCode;
  message: string;
}

/** Who asks, and what it may do. */
export interface Caller {
  role: Role;
  /** As events name it: `operator`, `token:NAME`, or `anyone` for who did not say. */
  actor: string;
}

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether a request may come in at all. A web page must not reach a loopback listener: so the Host must be one that the
 * listener has (a name that was rebound to loopback is not), and an Origin, which browsers send, must be the same.
 */
export function refusalOf(
  { host: header, origin }: Knock,
  { listenHost }: AccessSettings,
): Refusal | undefined {
  const host = hostOf(header);
  if (host === undefined) {
    return { status: 400, code: 'invalid_request', message: 'The host header is missing or cannot be read.' };
  }
  if (isLoopback(listenHost) && !isLoopback(host) && host !== listenHost.toLowerCase()) {
    return forbidden(`The host '${host}' is none of this listener's; ask it as ${listenHost} or localhost.`);
  }
  if (origin !== undefined && !sameOrigin(origin, header!)) {
    return forbidden('Pages of other origins may not ask this listener.');
  }
  return undefined;
}

/** Who asks for what needs permission, or why it is refused. Without tokens anyone on this machine may look. */
export function callerOf({ method, authorization }: Knock, settings: AccessSettings): Caller | Refusal {
  const reading = READING.has(method);
  const caller = holderOf(authorization, settings);
  if (caller) {
    if (reading || caller.role === 'admin') return caller;
    return forbidden(`The token of '${caller.actor}' may look, and change nothing.`);
  }
  if (authorization !== undefined) return unauthorized('This token is not known here.');
  if (settings.tokens.length > 0 || !isLoopback(settings.listenHost)) {
    return unauthorized('Send one of `admin.tokens`, as `authorization: Bearer TOKEN`.');
  }
  if (reading) return { role: 'viewer', actor: 'anyone' };
  return unauthorized(
    'A change needs the token in run/admin.token of the data directory, as `authorization: Bearer TOKEN`.',
  );
}

function holderOf(
  authorization: string | undefined,
  { tokens, localToken }: AccessSettings,
): Caller | undefined {
  const [, token] = /^Bearer +([^\s]+)$/i.exec(authorization ?? '') ?? [];
  if (token === undefined) return undefined;
  const digest = sha256(token);
  // Every hash is compared, so that time tells nothing.
  let found: Caller | undefined;
  for (const { name, hash, role } of tokens) {
    if (timingSafeEqual(digest, Buffer.from(hash.slice('sha256:'.length), 'hex')))
      found = { role, actor: `token:${name}` };
  }
  if (timingSafeEqual(digest, sha256(localToken))) found = { role: 'admin', actor: 'operator' };
  return found;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** The host of a Host header without its port, in lower case; IPv6 in brackets. */
function hostOf(header: string | undefined): string | undefined {
  const [, host] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(header ?? '') ?? [];
  return host?.toLowerCase();
}

/** An Origin is a scheme and what the Host header says; `null` and `file://` are nobody's. */
function sameOrigin(origin: string, host: string): boolean {
  const [, scheme] = /^(https?):\/\//.exec(origin) ?? [];
  if (scheme === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host === new URL(`${scheme}://${host}`).host;
}

function forbidden(message: string): Refusal {
  return { status: 403, code: 'forbidden', message };
}

function unauthorized(message: string): Refusal {
  return { status: 401, code: 'unauthorized', message };
}
