import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Bagged } from '../../kernel/bag.ts';
import type { Caller, HeaderList } from '../contracts.ts';

const EMPTY = Buffer.alloc(0);
const JOINED_BYTES_MAX = 16 * 1024;
/** How long a caller may take nothing of an answer that is finished, milliseconds. */
const UNTAKEN_MS_MAX = 60_000;

/** A caller on a node:http connection. */
export class HttpCaller implements Caller, Bagged {
  slot = -1;
  readonly method: string;
  readonly target: string;
  body: Buffer = EMPTY;
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly #untakenMs: number;
  readonly #closers: (() => void)[] = [];

  constructor(request: IncomingMessage, response: ServerResponse, untakenMs = UNTAKEN_MS_MAX) {
    this.#untakenMs = untakenMs;
    this.request = request;
    this.response = response;
    this.method = request.method ?? 'GET';
    this.target = readTarget(request.url ?? '/');
    response.on('close', () => this.#onClose());
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  headerCount(name: string): number {
    if (this.request.headers[name] === undefined) return 0;
    const raw = this.request.rawHeaders;
    let count = 0;
    for (let i = 0; i < raw.length; i += 2) {
      if (raw[i]!.length === name.length && raw[i]!.toLowerCase() === name) count++;
    }
    return count;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    const response = this.response;
    if (response.headersSent || response.destroyed) return;
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    headers.push('content-length', String(bytes));
    response.writeHead(status, headers);
    // Head and a small body leave in one write when both are strings.
    if (typeof body !== 'string' && bytes <= JOINED_BYTES_MAX)
      response.end(body.toString('latin1'), 'latin1');
    else response.end(body);
    this.#awaitTaking();
  }

  open(status: number, headers: HeaderList): void {
    const response = this.response;
    if (response.headersSent || response.destroyed) return;
    const { socket } = response;
    if (socket) {
      socket.cork();
      process.nextTick(uncork, socket);
    }
    response.writeHead(status, headers);
    response.on('drain', () => this.onDrain?.());
  }

  write(piece: Buffer | string): boolean {
    return this.response.write(piece);
  }

  end(): void {
    this.response.end();
    this.#awaitTaking();
  }

  destroy(): void {
    this.response.destroy();
  }

  /** Who never reads would else keep the connection, and the room of its body, for ever. Any progress begins it anew. */
  #awaitTaking(): void {
    const response = this.response;
    const { socket } = response;
    if (!socket || response.writableLength === 0) return;
    response.setTimeout(this.#untakenMs, () => response.destroy());
    response.on('finish', () => {
      if (socket.timeout === this.#untakenMs) socket.setTimeout(0); // a next request in the pipe may take longer
    });
  }

  whenClosed(run: () => void): void {
    if (this.response.closed) run();
    else this.#closers.push(run);
  }

  #onClose(): void {
    if (!this.response.writableFinished) this.onGone?.();
    for (const run of this.#closers) run();
  }
}

/** Head and first pieces of an answer, written in one turn, leave in one piece. */
function uncork(socket: Socket): void {
  socket.uncork();
}

/** Path and query of a request line, which may name the host as well (RFC 9112, 3.2.2). */
function readTarget(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return url;
  const { pathname, search } = new URL(url);
  return pathname + search;
}
