import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { HostOrder } from './contracts.ts';
import { badRequest, HostFault } from './fault.ts';

/** The largest request that a host reads. The gateway's own bound lies below it by default. */
const BODY_BYTES_MAX = 64 * 2 ** 20;
/** What may wait for a caller that reads slowly, before the answer's maker is held back. */
const UNREAD_BYTES_MAX = 256 * 1024;
/** Above the idle time of any client that keeps connections, so that it is the client who closes them. */
const KEEP_ALIVE_MS = 120_000;

/** One request and its answer. */
export interface Exchange {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Aborted once the caller has left, or when the time for draining is over. */
  readonly gone: AbortSignal;
  /** The whole answer: an object as JSON, a string or bytes as they are. */
  answer(status: number, body: object | string | Buffer, headers?: Record<string, string>): void;
  /** The head of an answer made of server-sent events. */
  openEvents(): void;
  /** One event; resolves when the next may follow. Resolves at once when the caller has left. */
  sendEvent(data: object | '[DONE]'): Promise<void>;
  endEvents(): void;
  /** Breaks the connection off in the middle of the answer: of the events so far, or of `partial` when nothing is sent yet. */
  cut(partial: string): void;
}

export type Handler = (exchange: Exchange) => Promise<void> | void;

/** What a host serves: `GET /health`, or with a function where paths have names in them. */
export interface Service {
  /** Gives the handler of a request, or undefined where there is none. */
  route(method: string, path: string): Handler | undefined;
}

export interface Listener {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** Requests that are being answered. */
  readonly running: number;
  /** See HostServer.close. */
  close(withinMs: number): Promise<void>;
}

/** Listens on a free port of the loopback interface; HTTP/1.1, bodies whole, answers whole or as events. */
export async function openListener(
  service: Service,
  timers: Timers,
  warn: NonNullable<HostOrder['warn']> = warnOnStderr,
): Promise<Listener> {
  const running = new Set<AbortController>();
  let closing: Promise<void> | undefined;

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
    const gone = new AbortController();
    running.add(gone);
    response.on('close', () => {
      running.delete(gone);
      if (!response.writableFinished) gone.abort();
      // Its connection is idle from now on, and would keep the listener from closing.
      if (closing) setImmediate(() => server.closeIdleConnections());
      // Its connection goes idle only after this, and nobody else would close it then.
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
    if (closing) response.setHeader('connection', 'close');
    void serve(service, request, response, gone.signal, warn);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port: 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    origin: `http://127.0.0.1:${port}`,
    get running() {
      return running.size;
    },
    close(withinMs) {
      closing ??= new Promise((resolve) => {
        let timer: TimerHandle;
        server.close(() => {
          timers.clear(timer);
          resolve();
        });
        server.closeIdleConnections();
        timer = timers.set(withinMs, () => {
          for (const gone of running) gone.abort();
          server.closeAllConnections();
        });
      });
      return closing;
    },
  };
}

async function serve(
  service: Service,
  request: IncomingMessage,
  response: ServerResponse,
  gone: AbortSignal,
  warn: NonNullable<HostOrder['warn']>,
): Promise<void> {
  const path = (request.url ?? '/').split('?')[0]!;
  const method = request.method ?? 'GET';
  try {
    const body = await readBody(request);
    if (body === undefined) return; // The caller left while it was sending.
    const handler = service.route(method, path);
    if (!handler) throw new HostFault(404, `no such path: ${method} ${path}`, { code: 'not_found' });
    await handler(new NodeExchange(method, path, request.headers, body, gone, response));
  } catch (error) {
    if (!(error instanceof HostFault)) warn(`${method} ${path} failed`, error);
    fail(response, path, error);
  }
}

function warnOnStderr(text: string, error?: unknown): void {
  process.stderr.write(`${text}${error instanceof Error ? `: ${error.stack}` : ''}\n`);
}

/** Tells the caller what went wrong: as the answer, or, within events, as the last of them. */
function fail(response: ServerResponse, path: string, error: unknown): void {
  if (response.destroyed || response.writableEnded) return;
  const fault = error instanceof HostFault ? error : new HostFault(500, 'the model host failed');
  if (response.headersSent) {
    response.end(`data: ${JSON.stringify(fault.toOpenAI())}\n\n`);
    return;
  }
  const text = JSON.stringify(path.startsWith('/v2') ? { error: fault.message } : fault.toOpenAI());
  response.writeHead(fault.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(fault.retryAfterSeconds !== undefined && { 'retry-after': String(fault.retryAfterSeconds) }),
  });
  response.end(text);
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const tooLarge = () =>
    new HostFault(413, `the body is larger than ${BODY_BYTES_MAX} bytes`, { code: 'body_too_large' });
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw tooLarge();
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > BODY_BYTES_MAX) throw tooLarge();
      pieces.push(piece);
    }
  } catch (error) {
    if (error instanceof HostFault) throw error;
    return undefined;
  }
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

class NodeExchange implements Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly gone: AbortSignal;
  readonly #response: ServerResponse;

  constructor(
    method: string,
    path: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
    gone: AbortSignal,
    response: ServerResponse,
  ) {
    this.method = method;
    this.path = path;
    this.headers = headers;
    this.body = body;
    this.gone = gone;
    this.#response = response;
  }

  answer(status: number, body: object | string | Buffer, headers: Record<string, string> = {}): void {
    if (this.#response.destroyed) return;
    const bytes =
      typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : JSON.stringify(body);
    this.#response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(bytes),
      ...headers,
    });
    this.#response.end(bytes);
  }

  openEvents(): void {
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
  }

  async sendEvent(data: object | '[DONE]'): Promise<void> {
    const response = this.#response;
    if (response.destroyed) return;
    response.write(`data: ${data === '[DONE]' ? data : JSON.stringify(data)}\n\n`);
    if (response.writableLength <= UNREAD_BYTES_MAX) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        response.off('drain', done);
        response.off('close', done);
        resolve();
      };
      response.once('drain', done);
      response.once('close', done);
    });
  }

  endEvents(): void {
    this.#response.end();
  }

  cut(partial: string): void {
    const response = this.#response;
    if (!response.headersSent) {
      const length = Buffer.byteLength(partial) + 1; // more than will come
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
    }
    response.write(partial, () => response.destroy());
  }
}

/** The JSON object in a body. */
export function jsonObject(body: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw badRequest(`the body is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest('the body must be a JSON object');
  }
  return value as Record<string, unknown>;
}
