import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import { HttpCaller } from './http-caller.ts';

/** How long a caller may go on sending a body that was refused, so that it reads the refusal. */
const LINGER_MS = 2_000;

/**
 * Answers while the body may still be coming: sends its answer whole, and ends the connection only when the rest of the body
 * has come, or after a while.
 */
export class LingeringCaller extends HttpCaller {
  readonly #rest: IncomingMessage;
  readonly #reply: ServerResponse;
  readonly #timers: Timers;

  constructor(request: IncomingMessage, response: ServerResponse, timers: Timers) {
    super(request, response);
    this.#rest = request;
    this.#reply = response;
    this.#timers = timers;
  }

  override respond(status: number, headers: string[], body: Buffer | string): void {
    if (this.#rest.readableEnded) {
      super.respond(status, headers, body);
      return;
    }
    const reply = this.#reply;
    if (reply.headersSent || reply.destroyed) return;
    reply.writeHead(status, [
      ...headers,
      ...(headers.includes('connection') ? [] : ['connection', 'close']),
      'content-length',
      String(Buffer.byteLength(body)),
    ]);
    reply.write(body);
    let timer: TimerHandle;
    const end = () => {
      this.#timers.clear(timer);
      reply.end();
    };
    timer = this.#timers.set(LINGER_MS, end);
    this.#rest.on('end', end);
    this.#rest.on('close', end);
    this.#rest.resume();
  }
}
