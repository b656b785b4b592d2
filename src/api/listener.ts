import { readFileSync } from 'node:fs';
import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { type AccessSettings, callerOf, type Knock, type Refusal, refusalOf } from './access.ts';
import { REQUEST_BYTES_MAX } from './contracts.ts';
import type { Bindings } from './route-parts.ts';

export interface AdminListenerOptions {
  /** Without brackets. */
  host: string;
  port: number;
  /** Files, PEM. */
  tls: { cert: string; key: string } | undefined;
  /** Asked at each request, so that a change of tokens counts at once. */
  access: () => AccessSettings;
  app: { fetch: (request: Request, bindings: Bindings) => Response | Promise<Response> };
}

export interface AdminListener {
  port: number;
  /** Reads its certificate again, which may have been renewed; throws, and keeps the one before, where that cannot be used. */
  renew(): void;
  /** Takes no more connections, ends those that stand, and resolves when none is left. */
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 1000;
const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
};

/**
 * Listens for the management API. The port is shared with a control that is on its way out (reusePort). Whether a
 * request may come in is judged before anything else is done with it; what it may do, by the app.
 */
export async function adminListener({
  host,
  port,
  tls,
  access,
  app,
}: AdminListenerOptions): Promise<AdminListener> {
  const answer = getRequestListener(
    (request, env) => {
      const { incoming } = env as HttpBindings;
      return app.fetch(request, { caller: callerOf(knockOf(incoming), access()) });
    },
    { overrideGlobalObjects: false },
  );
  const take: RequestListener = (incoming, outgoing) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) outgoing.setHeader(name, value);
    const refusal = refusalOf(knockOf(incoming), access()) ?? bodyRefusal(incoming.headers);
    if (!refusal) return void answer(incoming, outgoing);
    // Its body is read and thrown away: a connection that is cut while it comes would take the answer with it.
    incoming.resume();
    refuse(outgoing, refusal);
  };
  const pair = () => tls && { cert: readFileSync(tls.cert), key: readFileSync(tls.key) };
  const secured = tls && createHttpsServer({ ...pair() }, take);
  const server = secured ?? createHttpServer(take);
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, reusePort: true }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    renew: () => secured?.setSecureContext({ ...pair() }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function knockOf({ method = '', headers: { host, origin, authorization } }: IncomingMessage): Knock {
  return { method, host, origin, authorization };
}

function bodyRefusal(headers: IncomingHttpHeaders): Refusal | undefined {
  if (headers['transfer-encoding'] !== undefined) {
    return { status: 400, code: 'invalid_request', message: 'A body must say its length in its head.' };
  }
  if (Number(headers['content-length'] ?? 0) > REQUEST_BYTES_MAX) {
    return { status: 413, code: 'body_too_large', message: `A body has ${REQUEST_BYTES_MAX} bytes at most.` };
  }
  return undefined;
}

function refuse(outgoing: ServerResponse, { status, code, message }: Refusal): void {
  const body = JSON.stringify({ error: { code, message } });
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  outgoing.end(body);
}
