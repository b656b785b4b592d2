import type { Bagged } from '../../kernel/bag.ts';
import type { TimerHandle } from '../../kernel/timers.ts';
import type { AnswerListener, UpstreamHeaders } from '../contracts.ts';
import { Attempt, type AttemptHost } from '../dispatch/attempt.ts';
import type { AttemptFailure } from '../dispatch/outcome.ts';
import { tellServed } from '../dispatch/sample.ts';
import { Exchange } from '../exchange.ts';
import type { Endpoint } from '../state/endpoint.ts';
import type { Backend } from '../state/world.ts';
import type { ShadowDeps } from './index.ts';

/** `dropped`: there was no free place, or the worker left before it was answered. */
export type ShadowOutcome = 'ok' | 'failed' | 'dropped';

/** The longest answer that is read. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export interface CopyDeps extends ShadowDeps {
  /** How it ended, once. */
  ended: (outcome: ShadowOutcome) => void;
  /** The endpoint's side is over, and its place given back. */
  over: () => void;
  /** Makes what hears its answer, where somebody compares it with the caller's. */
  listen?: ((copy: Exchange) => AnswerListener) | undefined;
}

/**
 * One copy of a request on its way to a shadow. Its answer is read and thrown away, once it was heard by what compares it
 * with the caller's. It ends by the backend's own time limits, whether or not the caller is still there.
 */
export class ShadowCopy implements AttemptHost, Bagged {
  slot = -1;
  readonly #deps: CopyDeps;
  readonly #x: Exchange;
  readonly #attempt: Attempt;
  readonly #listener: AnswerListener | undefined;
  #timer: TimerHandle;
  #ended = false;
  #bytes = 0;
  #heldBytes = 0;

  constructor(of: Exchange, backend: Backend, endpoint: Endpoint, deps: CopyDeps) {
    this.#deps = deps;
    const { clock, watch } = deps;
    const x = new Exchange(of.caller, of.id, of.requestId, clock.mono(), clock.wall());
    x.call = of.call;
    x.route = of.route;
    x.cost = of.cost;
    x.traceparent = of.traceparent;
    // A shadow hears what the target heard, whatever its own window is.
    const { name, settings } = backend;
    const [heard] = of.fitted ?? [];
    if (heard) x.fitted = [{ ...heard, backend: name, settings }];
    this.#x = x;
    this.#listener = deps.listen?.(x);
    const trial = watch.tries(endpoint, x.id);
    this.#attempt = new Attempt({ x, backend, endpoint, fresh: false, trial, host: this, deps });
  }

  start(): void {
    this.#watch();
    this.#attempt.start();
  }

  /** Ends it without an answer. */
  drop(): void {
    this.#end('dropped');
    this.#attempt.cancel();
  }

  begun(): void {
    this.#watch();
  }

  over({ endpoint, backend, tokens }: Attempt): void {
    const { clock, timers, watch, world, buffers } = this.#deps;
    timers.clear(this.#timer);
    watch.changed(endpoint, this.#x.id);
    if (backend.host) backend.host.usedAt = clock.mono();
    endpoint.give(tokens);
    buffers.give(this.#heldBytes);
    this.#deps.over();
    world.freed(endpoint);
  }

  commit(_headers: UpstreamHeaders, contentType: string | undefined): void {
    const x = this.#x;
    x.committed = true;
    x.streaming = contentType !== undefined;
    this.#attempt.firstContentAt = this.#deps.clock.mono();
    this.#watch();
  }

  hold(bytes: number): boolean {
    if (!this.#deps.buffers.take(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  write(piece: Buffer | string): void {
    this.#bytes += piece.length;
    if (this.#bytes <= ANSWER_BYTES_MAX) {
      this.#listener?.piece(piece);
      return;
    }
    this.#end('failed');
    this.#attempt.cancel();
  }

  respond(headers: UpstreamHeaders, body: Buffer): void {
    this.#listener?.whole(200, headers, body);
    this.#answered();
  }

  count(tokensIn: number | undefined, tokensOut: number | undefined): void {
    this.#x.tokensIn = tokensIn;
    this.#x.tokensOut = tokensOut;
  }

  done(): void {
    this.#listener?.done();
    this.#answered();
    this.#attempt.linger();
  }

  failed(failure: AttemptFailure): void {
    this.#end('failed');
    this.#attempt.giveUp(failure);
  }

  broken(failure: AttemptFailure): void {
    this.failed(failure);
  }

  #answered(): void {
    if (!this.#ended) tellServed(this.#attempt, this.#x, this.#deps.clock.mono());
    this.#end('ok');
  }

  #end(outcome: ShadowOutcome): void {
    this.#deps.timers.clear(this.#timer);
    if (this.#ended) return;
    this.#ended = true;
    this.#deps.ended(outcome);
  }

  /** One timer for the time limits of its attempt. */
  #watch(): void {
    const { clock, timers } = this.#deps;
    timers.clear(this.#timer);
    const dueMs = this.#attempt.dueAt - clock.mono();
    this.#timer = timers.set(Math.max(1, dueMs), () => {
      this.#attempt.checkTime(clock.mono());
      if (!this.#ended && !this.#attempt.over) this.#watch();
    });
  }
}
