import { Client, type Dispatcher } from 'undici';
import { EventSplitter } from '../protocols/openai/event-splitter.ts';
import { type AnswerTokens, readPiece, usageTokens } from './answer.ts';
import type { LoadRequest, LoadTask, Outcome, Sender, Watch } from './contracts.ts';

export interface SenderSettings {
  /** Connections at most; in an open loop further requests wait for one, and that wait is part of their latency. */
  connections: number;
  /** Of every request. */
  headers: Record<string, string>;
  /** PEM texts, and the name that the certificate must carry where it is not the host. */
  tls?: LoadTask['tls'];
}

/** An answer's bytes that are kept to read its usage from; of longer ones it stays unknown. */
const KEPT_BYTES_MAX = 2 ** 20;

/**
 * Sends over HTTP/1.1, one request at a time on a connection. `origin` is such as `http://127.0.0.1:7070`. The connection
 * used last is used next, found without a search: undici's own pool looks through all its connections for each request,
 * which with thousands of them takes longer than everything else.
 */
export function openSender(origin: string, settings: SenderSettings): Sender {
  const clients: Client[] = [];
  const idle: Client[] = [];
  const waiting: SentRequest[] = [];
  let waited = 0;
  const headers = { 'content-type': 'application/json', ...settings.headers };
  const connect = { timeout: 10_000, ...tlsOf(settings.tls) };

  function open(): Client {
    const client = new Client(origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0, // the run has a timeout of its own
      bodyTimeout: 0,
      keepAliveTimeout: 60_000,
      connect,
    });
    clients.push(client);
    return client;
  }

  function dispatch(client: Client, flight: SentRequest): void {
    // In the next turn: undici's client is not done with this one yet.
    flight.onFree = () => void setImmediate(next, client);
    client.dispatch({ method: 'POST', path: flight.path, headers, body: flight.body }, flight);
  }

  function next(client: Client): void {
    while (waited < waiting.length) {
      const flight = waiting[waited++]!;
      if (flight.over) continue;
      dispatch(client, flight);
      return;
    }
    waiting.length = waited = 0;
    idle.push(client);
  }

  return {
    send(request, watch) {
      const flight = new SentRequest(request, watch);
      const client = idle.pop() ?? (clients.length < settings.connections ? open() : undefined);
      if (client) dispatch(client, flight);
      else waiting.push(flight);
      return () => flight.abort();
    },
    async close() {
      await Promise.all(clients.map((client) => client.destroy()));
    },
  };
}

/** undici's handler of one request. */
class SentRequest implements Dispatcher.DispatchHandler {
  readonly path: string;
  readonly body: string;
  /** Called when its connection can take another one. */
  onFree: () => void = () => {};
  readonly #watch: Watch;
  readonly #streams: boolean;
  #controller: Dispatcher.DispatchController | undefined;
  #over = false;
  #status = 0;
  #degraded: string | undefined;
  #splitter: EventSplitter | undefined;
  #pieces: Buffer[] = [];
  #kept = 0;
  #tokens = 0;
  #usage: AnswerTokens | undefined;
  #done = false;
  #errorEvent = false;

  constructor(request: LoadRequest, watch: Watch) {
    this.path = request.path;
    this.body = request.body;
    this.#watch = watch;
    this.#streams = request.streams;
  }

  get over(): boolean {
    return this.#over;
  }

  abort(): void {
    this.#over = true;
    this.#controller?.abort(new Error('broken off'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(new Error('broken off'));
    else this.#watch.onSent();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    this.#degraded = headers['x-armature-degraded']?.toString();
    const type = headers['content-type']?.toString() ?? '';
    if (status === 200 && type.startsWith('text/event-stream')) this.#splitter = new EventSplitter();
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#over) return;
    if (this.#splitter) {
      for (const event of this.#splitter.push(piece)) this.#read(event);
    } else if (this.#kept + piece.length <= KEPT_BYTES_MAX) {
      this.#kept += piece.length;
      this.#pieces.push(piece);
    } else {
      this.#pieces = [];
      this.#kept = KEPT_BYTES_MAX;
    }
  }

  #read(event: Buffer): void {
    const piece = readPiece(event);
    if (piece.token) {
      this.#tokens++;
      this.#watch.onToken();
    }
    this.#usage = piece.usage ?? this.#usage;
    this.#done ||= piece.done;
    this.#errorEvent ||= piece.error;
  }

  onResponseEnd(): void {
    let failure: string | undefined;
    if (this.#status < 200 || this.#status > 299) failure = `http-${this.#status}`;
    else if (this.#errorEvent) failure = 'error-event';
    else if (this.#streams && !this.#done) failure = 'cut';
    this.onFree();
    this.#end(failure);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.onFree();
    this.#end(failureOf(error, this.#status !== 0));
  }

  #end(failure: string | undefined): void {
    if (this.#over) return;
    this.#over = true;
    const usage = this.#splitter ? this.#usage : usageTokens(this.#pieces);
    const outcome: Outcome = {
      status: this.#status,
      failure,
      degraded: this.#degraded,
      outputTokens: usage?.output ?? this.#tokens,
      readTokens: usage?.read,
    };
    this.#watch.onEnd(outcome);
  }
}

/** A short name for what went wrong on the wire. */
function failureOf(error: Error, answered: boolean): string {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ECONNREFUSED') return 'refused';
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect-timeout';
  if (answered) return 'cut';
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET') return 'reset';
  return 'broken';
}

/** What a connection is opened with. */
export function tlsOf({ serverName, ...pem }: NonNullable<LoadTask['tls']> = {}): object {
  return serverName === undefined ? pem : { ...pem, servername: serverName };
}
