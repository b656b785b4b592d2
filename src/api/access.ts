import { createHash, timingSafeEqual } from 'node:crypto';
import type { ErrorCode } from '../kernel/errors.ts';

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
  path: string;
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

export type Verdict = { role: Role; actor: string } | Refusal;

/** They hold no word about this installation: the page asks for a token itself. */
const OPEN_PATHS = new Set(['/', '/api/openapi.json']);
const READING = new Set(['GET', 'HEAD']);

/**
 * Judges a request by its head. A web page must not reach a loopback listener: so the Host must be one that the
 * listener has (a name that was rebound to loopback is not), and an Origin, which browsers send, must be the same.
 */
export function judge(knock: Knock, settings: AccessSettings): Verdict {
  const host = hostOf(knock.host);
  if (host === undefined)
    return { status: 400, code: 'invalid_request', message: 'The host header is missing or cannot be read.' };
  if (isLoopback(settings.listenHost) && !isLoopback(host) && host !== settings.listenHost.toLowerCase()) {
    return forbidden(
      `The host '${host}' is none of this listener's; ask it as ${settings.listenHost} or localhost.`,
    );
  }
  if (knock.origin !== undefined && !sameOrigin(knock.origin, knock.host!)) {
    return forbidden('Pages of other origins may not ask this listener.');
  }
  const reading = READING.has(knock.method);
  if (reading && OPEN_PATHS.has(knock.path)) return { role: 'viewer', actor: 'anyone' };

  const caller = callerOf(knock.authorization, settings);
  if (caller === undefined) {
    if (knock.authorization !== undefined) return unauthorized('This token is not known here.');
    if (settings.tokens.length > 0)
      return unauthorized('Send one of `admin.tokens`, as `authorization: Bearer TOKEN`.');
    if (!reading) {
      return unauthorized(
        'A change needs the token in run/admin.token of the data directory, as `authorization: Bearer TOKEN`.',
      );
    }
    return { role: 'viewer', actor: 'anyone' };
  }
  if (!reading && caller.role !== 'admin')
    return forbidden(`The token '${caller.actor}' may look, and change nothing.`);
  return caller;
}

function callerOf(authorization: string | undefined, { tokens, localToken }: AccessSettings) {
  const [, token] = /^Bearer +([^\s]+)$/i.exec(authorization ?? '') ?? [];
  if (token === undefined) return undefined;
  const digest = sha256(token);
  // Every hash is compared, so that time tells nothing.
  let found: { role: Role; actor: string } | undefined;
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

/** Whether a host reaches this machine alone. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}

function forbidden(message: string): Verdict {
  return { status: 403, code: 'forbidden', message };
}

function unauthorized(message: string): Verdict {
  return { status: 401, code: 'unauthorized', message };
}
