import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ByteReader } from './reader.ts';
import type { ReceivedRequest } from './request.ts';
import { pause } from './waiting.ts';

/** The calling side went away: the end of a script, not a fault of it. */
export class Gone extends Error {
  constructor() {
    super('the calling side went away');
  }
}

export type Headers = readonly (readonly [string, string])[];
/** How the end of a body is told: chunks, a length, the end of the connection, or by the script itself. */
export type Framing = 'chunked' | 'length' | 'close' | 'bare';

export interface JsonOptions {
  status?: number;
  headers?: Headers;
  gzip?: boolean;
}

export function newExchange(socket: Socket, reader: ByteReader, request: ReceivedRequest): Exchange {
  return new Exchange(socket, reader, request);
}

/** One request and the answer that a script writes to it, byte by byte. */
export class Exchange {
  readonly request: ReceivedRequest;
  /** Rejects with Gone when the calling side leaves before the answer is whole. */
  readonly whenGone: Promise<never>;
  /** The connection ends after this answer. */
  closes = false;
  /** Bytes that the caller's side has taken. */
  sentBytes = 0;
  #socket: Socket;
  #framing: Framing = 'bare';
  #finished = false;
  #gone = false;
  #over: (reason: Gone) => void;

  constructor(socket: Socket, reader: ByteReader, request: ReceivedRequest) {
    this.#socket = socket;
    this.request = request;
    const gone = Promise.withResolvers<never>();
    this.whenGone = gone.promise;
    this.#over = gone.reject;
    this.whenGone.catch(() => undefined); // nobody may be waiting
    const leave = () => {
      if (this.#finished || this.#gone) return;
      this.#gone = true;
      request.goneAtMs = reader.endedAtMs;
      this.#over(new Gone());
    };
    reader.onEnd = leave;
    if (reader.ended) leave();
  }

  get gone(): boolean {
    return this.#gone;
  }

  /** Writes exactly these bytes; resolves once the system has taken them, so that a slow reader is felt. */
  async send(bytes: Buffer | string): Promise<void> {
    if (this.#gone || this.#socket.destroyed) throw new Gone();
    this.request.answeredAtMs ??= systemClock.mono();
    const taken = new Promise<void>((resolve, reject) => {
      this.#socket.write(bytes, (error) => (error ? reject(new Gone()) : resolve()));
    });
    await Promise.race([taken, this.whenGone]);
    this.sentBytes += Buffer.byteLength(bytes);
  }

  async head(status = 200, headers: Headers = [], framing: Framing = 'chunked', length = 0): Promise<void> {
    await this.send(this.#render(status, headers, framing, length));
  }

  async sseHead(headers: Headers = [], framing: Framing = 'chunked'): Promise<void> {
    await this.head(200, [['Content-Type', 'text/event-stream; charset=utf-8'], ...headers], framing);
  }

  /** An answer before the answer, such as 103. */
  async interim(status: number, headers: Headers = []): Promise<void> {
    await this.send(this.#render(status, headers, 'bare', 0));
  }

  /** Bytes of the body, in the framing that the head announced. */
  async body(bytes: Buffer | string): Promise<void> {
    const data = Buffer.from(bytes);
    if (data.length === 0) return;
    if (this.#framing !== 'chunked') return this.send(data);
    await this.send(
      Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]),
    );
  }

  /** One event: an object as JSON, a text as it is. */
  async event(payload: unknown, eol: '\n' | '\r\n' = '\n'): Promise<void> {
    await this.body(`data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}${eol}${eol}`);
  }

  /** Ends the body as its framing asks. */
  async end(): Promise<void> {
    if (this.#framing === 'chunked') await this.send('0\r\n\r\n');
    this.finish();
  }

  /** A whole JSON answer in one write; bytes go out as they are. */
  async json(value: unknown, options: JsonOptions = {}): Promise<void> {
    const plain = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value));
    await this.whole(options.gzip ? gzipSync(plain) : plain, options.status ?? 200, [
      ['Content-Type', 'application/json'],
      ...(options.gzip ? ([['Content-Encoding', 'gzip']] as const) : []),
      ...(options.headers ?? []),
    ]);
  }

  /** A whole answer with a length, in one write. */
  async whole(body: Buffer, status: number, headers: Headers): Promise<void> {
    const head = this.#render(status, headers, 'length', body.length);
    await this.send(Buffer.concat([Buffer.from(head, 'latin1'), body]));
    this.finish();
  }

  /** Closes the connection as it stands. */
  fin(): void {
    this.finish();
    this.closes = true;
    this.#socket.end();
  }

  reset(): void {
    this.finish();
    this.closes = true;
    this.#socket.resetAndDestroy();
  }

  /** Lets `ms` pass, unless the caller leaves: then it throws Gone. */
  async pause(ms: number): Promise<void> {
    await Promise.race([pause(ms), this.whenGone]);
  }

  /** Waits for the caller to leave. */
  hang(): Promise<never> {
    return this.whenGone;
  }

  /** The answer is written as far as it ever will be: a caller who leaves now has not left early. */
  finish(): void {
    if (this.#finished || this.#gone) return;
    this.#finished = true;
    this.request.finishedAtMs = systemClock.mono();
  }

  /** The engine itself dies: the request is over, and nobody left it. */
  abandon(): void {
    this.finish();
    this.closes = true;
    this.#over(new Gone());
  }

  #render(status: number, headers: Headers, framing: Framing, length: number): string {
    if (status >= 200) this.#framing = framing;
    const lines = [`HTTP/1.1 ${status} X`, ...headers.map(([name, value]) => `${name}: ${value}`)];
    if (framing === 'chunked') lines.push('Transfer-Encoding: chunked');
    if (framing === 'length') lines.push(`Content-Length: ${length}`);
    if (framing === 'close') {
      lines.push('Connection: close');
      this.closes = true;
    }
    return `${lines.join('\r\n')}\r\n\r\n`;
  }
}
