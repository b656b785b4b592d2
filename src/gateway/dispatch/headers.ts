import type { Random } from '../../kernel/random.ts';
import type { UpstreamHeaders } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import type { Backend } from '../state/world.ts';

/** Headers of a caller that go upstream as they are. Everything else stays here, its authorization above all. */
const PASSED_ON = ['content-type', 'openai-beta', 'inference-header-content-length', 'baggage'];

/** Headers of an engine's answer that are about its own connection, or that Armature says itself. */
const KEPT_BACK = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'date',
  'server',
  'via',
  'x-request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'set-cookie',
  'www-authenticate',
  'alt-svc',
  'strict-transport-security',
]);

/** What a request carries upstream; this attempt gets a place of its own in the caller's trace. */
export function upstreamHeaders(x: Exchange, backend: Backend, random: Random): string[] {
  const headers: string[] = [];
  for (const name of PASSED_ON) {
    const value = x.caller.header(name);
    if (value !== undefined) headers.push(name, value);
  }
  const call = x.call!;
  if (
    call.kind === 'infer' &&
    call.headerLength === undefined &&
    x.caller.header('content-type') === undefined
  ) {
    headers.push('content-type', 'application/json'); // some servers want it said; some clients do not say it
  }
  headers.push('accept', call.stream ? 'text/event-stream' : (x.caller.header('accept') ?? '*/*'));
  headers.push(
    'accept-encoding',
    call.protocol === 'oip' ? (x.caller.header('accept-encoding') ?? 'identity') : 'identity',
  );
  headers.push('x-request-id', x.requestId);
  if (x.traceparent) {
    headers.push('traceparent', `00-${x.traceparent.traceId}-${spanId(random)}-${x.traceparent.flags}`);
    const state = x.caller.header('tracestate');
    if (state !== undefined) headers.push('tracestate', state);
  }
  headers.push(...backend.authHeaders);
  return headers;
}

/** What of an engine's headers the caller gets. */
export function passedBack(headers: UpstreamHeaders): string[] {
  const passed: string[] = [];
  const named = namedByConnection(headers['connection']);
  for (const name in headers) {
    if (KEPT_BACK.has(name) || named?.includes(name) || isOurs(name)) continue;
    const value = headers[name];
    if (typeof value === 'string') passed.push(name, value);
    else for (const each of value ?? []) passed.push(name, each);
  }
  return passed;
}

function isOurs(name: string): boolean {
  return (
    name.startsWith('x-armature-') || name.startsWith('access-control-') || name.startsWith('x-ratelimit-')
  );
}

/** Headers that are for the engine's own connection alone (RFC 9110, 7.6.1); undefined for the usual values. */
function namedByConnection(connection: string | string[] | undefined): string[] | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return String(connection)
    .toLowerCase()
    .split(/[\s,]+/);
}

/** Whether a body cannot be read without undoing a coding; `identity` is none. */
export function isEncoded(headers: UpstreamHeaders): boolean {
  const coding = headers['content-encoding'];
  return coding !== undefined && coding !== '' && coding !== 'identity';
}

/** Reads a W3C traceparent; undefined for one that is broken, which is then not passed on. */
export function readTraceparent(header: string | undefined): { traceId: string; flags: string } | undefined {
  // Version 00 has nothing behind its flags; a later one may.
  const match =
    header === undefined
      ? null
      : /^(?!ff)(?!00-.{53})[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(header);
  if (!match || /^0+$/.test(match[1]!) || /^0+$/.test(match[2]!) || header!.length > 512) return undefined;
  return { traceId: match[1]!, flags: match[3]! };
}

function spanId(random: Random): string {
  const half = () =>
    Math.floor(random.next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  const id = half() + half();
  return id === '0000000000000000' ? '0000000000000001' : id;
}
