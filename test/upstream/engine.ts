import { createServer, type Server, type Socket } from 'node:net';
import { systemClock } from '../../src/kernel/clock.ts';
import { type Exchange, Gone, newExchange } from './exchange.ts';
import { ByteReader } from './reader.ts';
import { type ReceivedRequest, readRequest } from './request.ts';
import { answerByPath, answerProbes } from './scripts.ts';
import { eventually } from './waiting.ts';

/** What an engine does with one request. Leaving it without an end leaves the caller without one. */
export type Script = (exchange: Exchange) => Promise<void>;

export interface EngineOptions {
  /** Default: a free one. */
  port?: number;
  /** Default: 127.0.0.1. */
  host?: string;
}

/**
 * A scripted engine over bare sockets: every byte it answers is the script's, every byte it got is kept.
 * POST requests run `script`, all others (probes, lists, gauges) run `probes`.
 */
export class ScriptedEngine implements AsyncDisposable {
  script: Script;
  probes: Script = answerProbes;
  readonly requests: ReceivedRequest[] = [];
  /** Connections ever accepted. */
  connections = 0;
  /** POST requests running now. */
  active = 0;
  /** The most POST requests that ran at once, not counting those whose caller had already left. */
  peak = 0;
  /** What scripts threw. A broken script also resets its connection, and disposing of the engine rethrows the first. */
  readonly scriptErrors: unknown[] = [];
  #server: Server | undefined;
  #sockets = new Set<Socket>();
  #running = new Set<Exchange>();
  #host: string;
  #port = 0;

  constructor(script: Script, host: string) {
    this.script = script;
    this.#host = host;
  }

  get port(): number {
    return this.#port;
  }
  /** Without a path: what an OIP endpoint is given as. */
  get root(): string {
    return `http://${this.#host}:${this.#port}`;
  }
  /** With `/v1`: what an OpenAI endpoint is given as. */
  get v1(): string {
    return `${this.root}/v1`;
  }
  get posts(): ReceivedRequest[] {
    return this.requests.filter((request) => request.method === 'POST');
  }
  /** Connections open now. */
  get open(): number {
    return this.#sockets.size;
  }

  async listen(port = this.#port): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host: this.#host, backlog: 4096 }, resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    this.#port = address.port;
    this.#server = server;
  }

  /** Waits until `count` POST requests have come in whole, and gives the newest. */
  async posted(count: number, withinMs = 5000): Promise<ReceivedRequest> {
    await eventually(
      `${count} requests at the engine`,
      () => this.posts.filter((request) => request.complete).length >= count,
      withinMs,
    );
    return this.posts[count - 1]!;
  }

  /** New connections are refused from now on; the open ones live. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Dies as a killed process does: nothing listens, every connection is closed. `listen` brings it back on its port. */
  die(how: 'fin' | 'reset' = 'fin'): void {
    this.refuse();
    for (const exchange of this.#running) exchange.abandon();
    for (const socket of this.#sockets) {
      if (how === 'reset') socket.resetAndDestroy();
      else socket.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.die();
    if (this.scriptErrors.length > 0) throw this.scriptErrors[0];
  }

  #accept(socket: Socket): void {
    const connection = ++this.connections;
    this.#sockets.add(socket);
    const reader = new ByteReader(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    this.#serve(socket, reader, connection).catch((error) => {
      if (!(error instanceof Gone) && !reader.ended) this.scriptErrors.push(error);
      socket.destroy();
    });
  }

  async #serve(socket: Socket, reader: ByteReader, connection: number): Promise<void> {
    for (let sequence = 0; !reader.ended; sequence++) {
      const request = await readRequest(reader, socket, connection, sequence, (seen) =>
        this.requests.push(seen),
      );
      if (request === undefined) break;
      const exchange = newExchange(socket, reader, request);
      await this.#run(exchange);
      const last = exchange.closes || request.header('connection')?.toLowerCase() === 'close';
      if (last || socket.destroyed) break;
    }
    socket.end();
  }

  async #run(exchange: Exchange): Promise<void> {
    const posted = exchange.request.method === 'POST';
    if (posted) {
      this.active++;
      this.#running.add(exchange);
      this.#notePeak();
    }
    try {
      await Promise.race([(posted ? this.script : this.probes)(exchange), exchange.whenGone]);
      exchange.finish();
    } catch (error) {
      if (!(error instanceof Gone)) {
        this.scriptErrors.push(error);
        exchange.reset();
      }
    } finally {
      if (posted) this.active--;
      this.#running.delete(exchange);
    }
  }

  /** Looks again after the loop has read its sockets, so that a caller who had left before this one came does not count. */
  #notePeak(): void {
    if (this.active <= this.peak) return;
    const running = [...this.#running];
    setImmediate(() => {
      const count = running.filter((exchange) => exchange.request.goneAtMs === undefined).length;
      this.peak = Math.max(this.peak, count);
    });
  }
}

export async function startEngine(
  script: Script = answerByPath,
  options: EngineOptions = {},
): Promise<ScriptedEngine> {
  const engine = new ScriptedEngine(script, options.host ?? '127.0.0.1');
  await engine.listen(options.port ?? 0);
  return engine;
}

/** Waits until the caller has let go of a request whose answer is unfinished; gives the moment, in `mono` milliseconds. */
export function letGo(request: ReceivedRequest, withinMs = 2000): Promise<number> {
  return eventually('the request was cancelled at the engine', () => request.goneAtMs, withinMs);
}

/** Milliseconds on the clock that requests and answers are stamped with. */
export const nowMs = (): number => systemClock.mono();
