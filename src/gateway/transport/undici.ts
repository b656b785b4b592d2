import { buildConnector, Client, type Dispatcher } from 'undici';
import type {
  Flight,
  OpenTransport,
  Transport,
  TransportError,
  TransportSettings,
  UpstreamHeaders,
  UpstreamRequest,
  UpstreamSink,
} from '../contracts.ts';
import { skipContinue } from './interim.ts';

/** Below the 5 s after which uvicorn, the server of most engines, closes an idle connection. */
const IDLE_MS_PLAIN = 4_000;
const IDLE_MS_TLS = 30_000;
const HEADER_BYTES_MAX = 65_536;

/**
 * One undici Client for each connection, kept in a stack: the one used last is used next. So it is known of every
 * request whether its connection is fresh, which tells a request that was never read from one that failed.
 * Connections are bounded by the endpoint's concurrency: a request is only sent when it holds a place there.
 */
export const openUndici: OpenTransport = (origin, settings) => new UndiciTransport(origin, settings);

class UndiciTransport implements Transport {
  readonly #origin: string;
  readonly #connect: buildConnector.connector;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #closed = false;

  constructor(origin: string, settings: TransportSettings) {
    this.#origin = origin;
    this.#connect = buildConnector({
      allowH2: false,
      timeout: settings.connectMs,
      ...(settings.tls ? tlsOptions(settings.tls) : {}),
    });
  }

  send(request: UpstreamRequest, sink: UpstreamSink): Flight {
    const connection = (request.fresh ? undefined : this.#idle.pop()) ?? this.#open();
    return new UndiciFlight(connection, request, sink);
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #open(): Connection {
    const tls = this.#origin.startsWith('https:');
    const client = new Client(this.#origin, {
      connect: (options, callback) =>
        this.#connect(options, (...result: buildConnector.CallbackArgs) => {
          if (result[1]) {
            result[1].setNoDelay(true);
            skipContinue(result[1], () => connection.awaitsHead);
          }
          callback(...result);
        }),
      pipelining: 1,
      keepAliveTimeout: tls ? IDLE_MS_TLS : IDLE_MS_PLAIN,
      keepAliveMaxTimeout: 600_000,
      headersTimeout: 0, // the attempt has timeouts of its own
      bodyTimeout: 0,
      maxHeaderSize: HEADER_BYTES_MAX,
      allowH2: false,
    });
    const connection = new Connection(client, (usable) => {
      if (usable && !this.#closed) this.#idle.push(connection);
      else connection.destroy();
    });
    this.#all.add(connection);
    client.on('disconnect', () => {
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      this.#all.delete(connection);
      if (!connection.busy) connection.destroy();
    });
    return connection;
  }
}

class Connection {
  readonly client: Client;
  /** Answers that came whole on this connection. */
  answers = 0;
  busy = false;
  /** A request is on its way, and no final head has come. */
  awaitsHead = false;
  #destroyed = false;
  readonly #onIdle: (usable: boolean) => void;

  constructor(client: Client, onIdle: (usable: boolean) => void) {
    this.client = client;
    this.#onIdle = onIdle;
  }

  release(usable: boolean): void {
    this.busy = false;
    this.#onIdle(usable && !this.#destroyed);
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    void this.client.destroy();
  }
}

/** One object is the flight, and undici's handler of it. */
class UndiciFlight implements Flight, Dispatcher.DispatchHandler {
  readonly #connection: Connection;
  readonly #sink: UpstreamSink;
  #controller: Dispatcher.DispatchController | undefined;
  #sent = false;
  #headed = false;
  #over = false;

  constructor(connection: Connection, request: UpstreamRequest, sink: UpstreamSink) {
    this.#connection = connection;
    this.#sink = sink;
    connection.busy = true;
    connection.awaitsHead = true;
    connection.client.dispatch(
      {
        method: request.method as Dispatcher.HttpMethod,
        path: request.path,
        headers: request.headers,
        body: request.body ?? null,
      },
      this,
    );
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#controller?.abort(new Error('broken off'));
    this.#connection.busy = false;
    this.#connection.destroy();
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) {
      controller.abort(new Error('broken off'));
      return;
    }
    this.#sent = true;
    this.#sink.onSent();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: UpstreamHeaders,
  ): void {
    if (this.#over || status < 200) return;
    this.#headed = true;
    this.#connection.awaitsHead = false;
    this.#sink.onHead(status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (!this.#over) this.#sink.onData(piece);
  }

  onResponseEnd(): void {
    if (this.#over) return;
    this.#over = true;
    const connection = this.#connection;
    connection.answers++;
    connection.release(true);
    this.#sink.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#over) return;
    this.#over = true;
    const stale = this.#sent && !this.#headed && this.#connection.answers > 0 && isClose(error);
    this.#connection.release(false);
    this.#sink.onError(describe(error, this.#sent, stale));
  }
}

function describe(error: Error, sent: boolean, stale: boolean): TransportError {
  const code = codeOf(error);
  const message = error.message || code;
  if (!sent) {
    if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT')
      return { kind: 'connect-timeout', message, unsent: true, stale: false };
    const tls = /CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/.test(code);
    return { kind: tls ? 'tls' : 'refused', message, unsent: true, stale: false };
  }
  return { kind: isClose(error) ? 'reset' : 'protocol', message, unsent: false, stale };
}

/** The connection ended, as opposed to carrying something that is not HTTP. */
function isClose(error: Error): boolean {
  return (
    ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'ECONNABORTED', 'UND_ERR_DESTROYED'].includes(codeOf(error)) &&
    error.message !== 'bad response'
  );
}

function codeOf(error: Error & { code?: unknown; errors?: unknown[] }): string {
  if (typeof error.code === 'string') return error.code;
  const first = error.errors?.[0];
  return first instanceof Error ? codeOf(first) : error.name;
}

function tlsOptions(tls: NonNullable<TransportSettings['tls']>): buildConnector.BuildOptions {
  return {
    ...(tls.ca ? { ca: tls.ca } : {}),
    ...(tls.cert ? { cert: tls.cert } : {}),
    ...(tls.key ? { key: tls.key } : {}),
    ...(tls.serverName ? { servername: tls.serverName } : {}),
  };
}
