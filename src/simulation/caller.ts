import type { Caller, HeaderList } from '../gateway/contracts.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Answered, Arrival } from './contracts.ts';

const ERROR_CODE = /"code":"([a-z_]+)"/;
const ERROR_EVENT = /^(?:event: error\n)?data: \{"error"/;

/** Somebody who asks in a simulation: as little of an HTTP exchange as the path reads, and what it answered. */
export class SimulatedCaller implements Caller, Answered {
  readonly method = 'POST';
  readonly target: string;
  readonly body: Buffer;
  readonly arrival: Arrival;
  readonly startedAt: number;
  /** Sent as x-request-id, and so in the request's record. */
  readonly requestId: string;
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  firstAt: number | undefined;
  endedAt = 0;
  status = 0;
  broken = false;
  left = false;
  /** How often an answer was begun and ended: once each, or the path is wrong. */
  begun = 0;
  ended = 0;
  readonly #authorization: string | undefined;
  readonly #clock: Clock;
  readonly #onAnswered: (caller: SimulatedCaller) => void;
  #headers: HeaderList = [];
  #error: string | undefined;
  #closers: (() => void)[] | undefined;

  constructor(
    arrival: Arrival,
    body: Buffer,
    requestId: string,
    authorization: string | undefined,
    clock: Clock,
    onAnswered: (caller: SimulatedCaller) => void,
  ) {
    this.target = arrival.kind === 'chat' ? '/v1/chat/completions' : '/v1/embeddings';
    this.arrival = arrival;
    this.body = body;
    this.requestId = requestId;
    this.startedAt = clock.mono();
    this.#authorization = authorization;
    this.#clock = clock;
    this.#onAnswered = onAnswered;
  }

  header(name: string): string | undefined {
    const { priority, deadlineMs, session } = this.arrival;
    if (name === 'x-request-id') return this.requestId;
    if (name === 'authorization') return this.#authorization;
    if (name === 'x-armature-priority') return priority;
    if (name === 'x-armature-deadline-ms') return deadlineMs === undefined ? undefined : String(deadlineMs);
    if (name === 'x-armature-session') return session;
    return name === 'content-type' ? 'application/json' : undefined;
  }

  headerCount(name: string): number {
    return this.header(name) === undefined ? 0 : 1;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    this.open(status, headers);
    if (status >= 400) this.#error = typeof body === 'string' ? body : body.toString('latin1');
    this.#end();
  }

  open(status: number, headers: HeaderList): void {
    this.begun++;
    this.status = status;
    this.#headers = headers;
  }

  write(piece: Buffer | string): boolean {
    this.firstAt ??= this.#clock.mono();
    if (typeof piece === 'string' && ERROR_EVENT.test(piece)) {
      this.broken = true;
      this.#error = piece;
    }
    return true;
  }

  end(): void {
    this.#end();
  }

  destroy(): void {
    this.broken = true;
    this.#end();
  }

  whenClosed(run: () => void): void {
    if (this.ended > 0) run();
    else (this.#closers ??= []).push(run);
  }

  /** Leaves before the answer is whole; too late, it is nothing. */
  leave(): void {
    if (this.ended > 0) return;
    this.left = true;
    const { onGone } = this;
    this.#end();
    onGone?.();
  }

  get degraded(): string | undefined {
    return this.answerHeader('x-armature-degraded');
  }

  get backend(): string | undefined {
    return this.answerHeader('x-armature-backend');
  }

  get code(): string | undefined {
    return this.#error === undefined ? undefined : ERROR_CODE.exec(this.#error)?.[1];
  }

  get retryAfterSeconds(): number | undefined {
    const text = this.answerHeader('retry-after');
    return text === undefined ? undefined : Number(text);
  }

  answerHeader(name: string): string | undefined {
    const headers = this.#headers;
    for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1];
    return undefined;
  }

  #end(): void {
    if (this.ended++ > 0) return;
    this.endedAt = this.#clock.mono();
    if (this.status === 200 && !this.broken && !this.left) this.firstAt ??= this.endedAt;
    for (const run of this.#closers?.splice(0) ?? []) run();
    this.#onAnswered(this);
  }
}
