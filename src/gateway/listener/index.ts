import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import { Bag } from '../../kernel/bag.ts';
import { type Failure, invalidRequest } from '../../kernel/errors.ts';
import { hostAndPort, isLoopback } from '../../kernel/listen-address.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { BufferBudget } from '../buffer-budget.ts';
import { drainingFailure } from '../failures.ts';
import { failureAnswer } from '../own-answers.ts';
import type { Path } from '../path.ts';
import { readBody } from './body.ts';
import { HttpCaller } from './http-caller.ts';
import { LingeringCaller } from './lingering-caller.ts';
import { isUpload, UploadCaller } from './upload-caller.ts';

/** Longer than load balancers keep an idle connection, so that it is they who close it. */
const KEEP_ALIVE_MS = 75_000;
/** A caller's whole head, and its whole request. */
const HEADERS_MS_MAX = 60_000;
const REQUEST_MS_MAX = 300_000;
const HEADER_BYTES_MAX = 32 * 1024;
/** A body up to this is read before it is asked whose it is, so that the connection can be used again. */
const STRANGER_BYTES_MAX = 64 * 1024;

export interface ListenerOptions {
  /** HOST:PORT */
  listen: string;
  /** PEM texts. */
  tls: { cert: string; key: string } | undefined;
  path: Path;
  timers: Timers;
  buffers: BufferBudget;
  bodyBytesMax: () => number;
  /** Whether callers have to show a key. */
  guarded: () => boolean;
  /** Whether the worker, or one route, can take requests. */
  ready: (route: string | undefined) => boolean | undefined;
}

/** Where callers come in. What they send is parsed by node:http. */
export class Listener {
  readonly #server: Server;
  readonly #options: ListenerOptions;
  #tls: ListenerOptions['tls'];
  /** Exchanges that have begun and are not over: a body may still be coming, or an answer still leaving. */
  readonly #open = new Bag<HttpCaller>();
  /** Connections that stand, and whether each has carried a request. */
  readonly #sockets = new Map<Socket, boolean>();
  #stopping = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#tls = options.tls;
    const settings = {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS_MAX,
      requestTimeout: REQUEST_MS_MAX,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: HEADER_BYTES_MAX,
      noDelay: true,
      // Node would refuse without a word; `wrongHead` does in the caller's protocol.
      requireHostHeader: false,
    };
    this.#server = options.tls ? createTlsServer({ ...settings, ...options.tls }) : createServer(settings);
    this.#server.on(options.tls ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#sockets.set(socket, false);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('request', (request, response) => this.#take(request, response));
    this.#server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      const refused =
        (!isUpload(request) && Number(request.headers['content-length'] ?? 0) > options.bodyBytesMax()) ||
        (bringsMuch(request) && options.path.strangerOf(new HttpCaller(request, response)) !== undefined);
      if (!refused) response.writeContinue();
      this.#take(request, response);
    });
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
      this.#take(request, response),
    );
    this.#server.on('clientError', (error: Error & { code?: string }, socket: Socket) =>
      refuseBytes(error, socket),
    );
  }

  /** Resolves once it listens. Several workers listen on one port. */
  async listen(): Promise<void> {
    const { host, port } = hostAndPort(this.#options.listen);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, reusePort: true, backlog: 4096 }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  /** Takes another certificate for the connections that come; throws, and keeps the one before, where it cannot be used. */
  renew(tls: ListenerOptions['tls']): void {
    const { cert, key } = this.#tls ?? {};
    if (!(this.#server instanceof TlsServer) || !tls || (tls.cert === cert && tls.key === key)) return;
    this.#server.setSecureContext(tls);
    this.#tls = tls;
  }

  /** Exchanges that are not over, on the wire as well. */
  get open(): number {
    return this.#open.size;
  }

  /** Takes no more connections, closes those that are idle, and lets every other one end with its answer. */
  stop(): void {
    this.#stopping = true;
    for (const { response } of this.#open) response.shouldKeepAlive = false;
    // http's own close would cut off answers that are written and not yet taken by a slow reader.
    NetServer.prototype.close.call(this.#server);
    const busy = new Set([...this.#open].map(({ request }) => request.socket));
    // A new connection is spared: its first request may be here already, and is told that this gateway drains.
    for (const [socket, used] of this.#sockets) if (used && !busy.has(socket)) socket.destroy();
  }

  /** Refuses those whose body has not come whole yet: the drain is over. */
  refuseUnread(): void {
    for (const { response, request } of this.#open) {
      if (request.complete || response.headersSent) continue;
      this.#options.path.refuseUnread(
        new LingeringCaller(request, response, this.#options.timers),
        drainingFailure(),
      );
    }
  }

  /** Connections that stand. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Ends every connection in peace: what was written is still read, which a reset would undo. */
  end(): void {
    for (const socket of this.#sockets.keys()) socket.end();
  }

  /** Closes every connection, whatever it carries. */
  destroy(): void {
    this.#server.closeAllConnections();
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { path, buffers, bodyBytesMax } = this.#options;
    const upload = isUpload(request);
    const caller = upload
      ? new UploadCaller(request, response, this.#options.timers)
      : new HttpCaller(request, response);
    if (this.#answerHealth(caller)) return;
    this.#sockets.set(request.socket, true);
    this.#open.add(caller);
    caller.whenClosed(() => this.#open.delete(caller));
    if (this.#stopping) response.shouldKeepAlive = false;
    if (isForeignPage(request, this.#options.guarded())) {
      path.refuseUnread(caller, forbiddenOrigin());
      request.resume();
      return;
    }
    const faulty = wrongHead(request);
    if (upload && !faulty) {
      path.handle(caller);
      return;
    }
    const refused = faulty ?? (bringsMuch(request) ? path.strangerOf(caller) : undefined);
    if (refused) {
      path.refuseUnread(new LingeringCaller(request, response, this.#options.timers), refused);
      return;
    }
    readBody(request, bodyBytesMax(), buffers, (result, release) => {
      if (typeof result === 'string') {
        this.#refuseBody(request, response, result);
        return;
      }
      caller.whenClosed(release);
      caller.body = result;
      path.handle(caller);
    });
  }

  #answerHealth(caller: HttpCaller): boolean {
    const { target, method } = caller;
    if (target !== '/healthz' && target !== '/readyz' && !target.startsWith('/readyz?')) return false;
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS') return false;
    if (target === '/healthz') {
      caller.respond(200, ['content-type', 'text/plain'], 'ok\n');
      return true;
    }
    const query = target.indexOf('?');
    const route =
      query < 0 ? undefined : (new URLSearchParams(target.slice(query)).get('route') ?? undefined);
    const ready = this.#options.ready(route);
    if (ready === undefined) caller.respond(404, ['content-type', 'text/plain'], 'no such route\n');
    else if (ready) caller.respond(200, ['content-type', 'text/plain'], 'ready\n');
    else caller.respond(503, ['content-type', 'text/plain', 'retry-after', '1'], 'not ready\n');
    return true;
  }

  /**
   * Answers although the body is still coming. The connection ends, but not before the caller has had the chance to read
   * the answer: closing at once would reset what is on its way.
   */
  #refuseBody(request: IncomingMessage, response: ServerResponse, why: 'too-large' | 'no-room'): void {
    const { path, timers, bodyBytesMax } = this.#options;
    const failure: Failure =
      why === 'too-large'
        ? {
            code: 'body_too_large',
            message: `The body is larger than the ${bodyBytesMax()} bytes that are allowed.`,
            phase: 'before-queue',
            shouldRetry: false,
          }
        : {
            code: 'overloaded',
            message: 'There is no room for the body now.',
            phase: 'before-queue',
            retryAfterSeconds: 1,
          };
    path.refuseUnread(new LingeringCaller(request, response, timers), failure);
  }
}

/** What HTTP/1.1 wants of a head, and node leaves to its user. */
function wrongHead({ headers, httpVersion }: IncomingMessage): Failure | undefined {
  if (httpVersion !== '1.1') return undefined;
  if (headers.host === undefined)
    return invalidRequest("A request by HTTP/1.1 needs the header 'host'.", 'host');
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return { ...invalidRequest('Nothing but 100-continue can be expected.', 'expect'), status: 417 };
  return undefined;
}

/** Whether the body may take room that is worth asking first who wants it. */
function bringsMuch({ headers }: IncomingMessage): boolean {
  return (
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > STRANGER_BYTES_MAX
  );
}

/** What cannot be parsed as HTTP is told so in one answer, and the connection ends. */
function refuseBytes(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.destroyed) {
    socket.destroy();
    return;
  }
  const [status, reason] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'Request Header Fields Too Large']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'Request Timeout']
        : [400, 'Bad Request'];
  const failure: Failure = {
    code: 'invalid_request',
    message: `The request cannot be read as HTTP: ${reason}.`,
    phase: 'before-queue',
  };
  const { body } = failureAnswer(failure, '/v1');
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/**
 * A web page of another origin: a browser would let it reach a listener on loopback. Pages served from loopback, and
 * callers that are no browsers, pass; so does a page of the listener's own name where callers have to show a key. Without
 * keys that name proves nothing: anybody's name can be made to point here.
 */
function isForeignPage(request: IncomingMessage, guarded: boolean): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const { hostname, host } = new URL(origin);
  return !isLoopback(hostname) && !(guarded && host === request.headers.host);
}

function forbiddenOrigin(): Failure {
  return {
    code: 'forbidden',
    message: 'Web pages of other origins may not call this listener.',
    phase: 'before-queue',
    shouldRetry: false,
  };
}
