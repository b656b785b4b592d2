import { connect as connectTcp, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';
import { systemClock } from '../../../kernel/clock.ts';
import { systemTimers, type TimerHandle } from '../../../kernel/timers.ts';
import type {
  Flight,
  TransportError,
  UpstreamHeaders,
  UpstreamRequest,
  UpstreamSink,
} from '../../contracts.ts';
import { type AnswerSink, ResponseReader } from './response-reader.ts';

export interface ConnectionOptions {
  host: string;
  port: number;
  hostHeader: string;
  secure: boolean;
  serverName: string | undefined;
  secureContext: SecureContext | undefined;
  connectMs: number;
  /** An answer is whole, and another request may follow. */
  onIdle: (connection: Connection) => void;
  onGone: (connection: Connection) => void;
}

/** Up to this size head and body leave in one buffer; a larger body is not copied for that. */
const JOINED_BYTES_MAX = 64 * 1024;
const TCP_KEEP_ALIVE_MS = 30_000;
/**
 * An engine that closed a connection while the next request was on its way is heard of after a round trip. One that closes it later
 * had the request, and may have done all of its work.
 */
const STALE_MS_MAX = 1_000;

/**
 * Every socket reads into this one buffer: a read is dealt with before the next one begins. What is kept of it is
 * copied, which for the small pieces that engines send costs less than a buffer for each read.
 */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** One connection to an engine, and the request that is on it: connection, flight and reader's sink in one object. */
export class Connection implements AnswerSink, Flight {
  /** Monotonic milliseconds since which it has had nothing to do. */
  idleSince = 0;
  readonly #options: ConnectionOptions;
  readonly #socket: Socket;
  readonly #reader = new ResponseReader(this);
  #connected = false;
  #gone = false;
  #connectTimer: TimerHandle;
  #sink: UpstreamSink | undefined;
  #request: UpstreamRequest | undefined;
  /** Answers that came whole before the present one. */
  #answers = 0;
  /** Bytes of the present answer have come. */
  #begun = false;
  /** Monotonic milliseconds at which the present request left. */
  #sentAt = 0;
  #paused = false;
  #lastError: (Error & { code?: string }) | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = this.#open();
  }

  send(request: UpstreamRequest, sink: UpstreamSink): Flight {
    this.#sink = sink;
    this.#request = request;
    this.#begun = false;
    this.#paused = false;
    if (this.#connected) this.#write();
    return this;
  }

  abort(): void {
    this.#sink = undefined;
    this.destroy();
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  destroy(): void {
    this.#sink = undefined;
    this.#socket.destroy();
  }

  onHead(status: number, headers: UpstreamHeaders): void {
    this.#sink?.onHead(status, headers);
  }

  onBody(piece: Buffer): void {
    this.#sink?.onData(Buffer.from(piece));
  }

  onWhole(reusable: boolean): void {
    const sink = this.#sink;
    this.#sink = undefined;
    this.#answers++;
    if (this.#paused) this.resume();
    // An engine that answers before it has read the request may never read the rest of it.
    if (reusable && !this.#gone && this.#socket.writableLength === 0) {
      this.idleSince = systemClock.mono();
      this.#options.onIdle(this);
    } else this.#socket.destroy();
    sink?.onEnd();
  }

  #open(): Socket {
    const { host, port, secure, serverName, secureContext, connectMs } = this.#options;
    const where: TcpNetConnectOpts = {
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      onread: { buffer: READ_BUFFER, callback: (bytes) => this.#read(bytes) },
    };
    const socket = secure
      ? connectTls({
          ...where,
          ...(serverName === undefined ? {} : { servername: serverName }),
          ...(secureContext === undefined ? {} : { secureContext }),
        })
      : connectTcp(where);
    this.#connectTimer = systemTimers.set(connectMs, () => {
      this.#lastError = Object.assign(new Error(`no connection within ${connectMs} ms`), {
        code: 'ETIMEDOUT',
      });
      socket.destroy();
    });
    socket.once(secure ? 'secureConnect' : 'connect', () => this.#onConnect());
    socket.on('error', (error: Error) => {
      this.#lastError = error;
    });
    socket.on('end', () => this.#onEnd());
    socket.on('close', () => this.#onClose());
    return socket;
  }

  #onConnect(): void {
    systemTimers.clear(this.#connectTimer);
    this.#connected = true;
    this.#socket.resume();
    if (this.#sink) this.#write();
  }

  /** Takes `bytes` bytes out of the common buffer; false stops the reading. */
  #read(bytes: number): boolean {
    this.#begun = true;
    const fault = this.#reader.push(READ_BUFFER.subarray(0, bytes));
    if (fault !== undefined) this.#break({ kind: 'protocol', message: fault, unsent: false, stale: false });
    return !this.#paused;
  }

  #write(): void {
    const request = this.#request!;
    this.#request = undefined;
    this.#reader.expect();
    const { body } = request;
    const length = body === undefined ? 0 : typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const head = this.#head(request, body === undefined ? undefined : length);
    const socket = this.#socket;
    if (length === 0) socket.write(head, 'latin1');
    else if (length <= JOINED_BYTES_MAX) {
      const joined = Buffer.allocUnsafe(head.length + length);
      joined.write(head, 0, 'latin1');
      if (typeof body === 'string') joined.write(body, head.length, 'utf8');
      else body!.copy(joined, head.length);
      socket.write(joined);
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body!);
      socket.uncork();
    }
    this.#sentAt = systemClock.mono();
    this.#sink!.onSent();
  }

  #head(request: UpstreamRequest, length: number | undefined): string {
    const { headers } = request;
    let head = `${request.method} ${request.path} HTTP/1.1\r\nhost: ${this.#options.hostHeader}\r\nconnection: keep-alive\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    return length === undefined ? `${head}\r\n` : `${head}content-length: ${length}\r\n\r\n`;
  }

  /** The engine has closed its side. */
  #onEnd(): void {
    if (this.#connected) this.#reader.end();
  }

  #onClose(): void {
    systemTimers.clear(this.#connectTimer);
    this.#gone = true;
    this.#options.onGone(this);
    if (!this.#sink) return;
    const message = this.#lastError?.message ?? 'the engine closed the connection';
    if (!this.#connected) this.#fail({ kind: refusal(this.#lastError), message, unsent: true, stale: false });
    else {
      const stale = this.#answers > 0 && !this.#begun && systemClock.mono() - this.#sentAt < STALE_MS_MAX;
      this.#fail({ kind: 'reset', message, unsent: false, stale });
    }
  }

  #break(error: TransportError): void {
    this.#fail(error);
    this.#socket.destroy();
  }

  #fail(error: TransportError): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.onError(error);
  }
}

function refusal(error: (Error & { code?: string }) | undefined): TransportError['kind'] {
  const code = error?.code ?? '';
  if (code === 'ETIMEDOUT') return 'connect-timeout';
  return /CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code) ? 'tls' : 'refused';
}
