import type { Failure } from '../kernel/errors.ts';
import { openaiErrorEvent } from '../protocols/openai/errors.ts';
import type { UpstreamHeaders } from './contracts.ts';
import { serviceKind, serviceSize } from './cost.ts';
import type { Attempt, AttemptHost } from './dispatch/attempt.ts';
import { passedBack } from './dispatch/headers.ts';
import type { AttemptFailure } from './dispatch/outcome.ts';
import { tellServed } from './dispatch/sample.ts';
import type { Exchange } from './exchange.ts';
import { tellHold } from './ladder.ts';
import { STREAM_TYPE } from './own-answers.ts';
import type { Path } from './path.ts';
import { recover } from './recover.ts';
import { noteFailedAttempt } from './release/judge.ts';

/** Weight of a new answer in the mean length of a route's answers, once there are as many: long ones are rare, and move it. */
const USUAL_WEIGHT = 0.02;

/** How attempts fail at an engine that is not there any more. */
const GONE_CODES = new Set(['connection-refused', 'connection-lost', 'stale-connection', 'connect-timeout']);

/** Brings the answer of one attempt to the caller, and tells the path how it went. */
export class Delivery implements AttemptHost {
  readonly #path: Path;
  readonly #x: Exchange;
  /** The attempt whose answer this is; set before it starts. */
  attempt!: Attempt;
  /** When the wait for the answer began. */
  #since = 0;
  /** Its endpoint has been told of the stream's first content. */
  #begun = false;

  constructor(path: Path, x: Exchange) {
    this.#path = path;
    this.#x = x;
  }

  begun(): void {
    this.#path.watchTime(this.#x);
  }

  over(attempt: Attempt): void {
    const { endpoint, backend } = attempt;
    const { clock, watch, world } = this.#path.deps;
    const now = clock.mono();
    watch.changed(endpoint, this.#x.id);
    if (backend.host) backend.host.usedAt = now;
    endpoint.give(attempt.tokens, this.#begun);
    backend.line.kept.ended(this.#x.tenant);
    backend.line.drain.finished(this.#x.rank, attempt.tokens, now - attempt.startedAt, now);
    world.freed(endpoint);
  }

  commit(headers: UpstreamHeaders, contentType: string | undefined): void {
    const x = this.#x;
    const { clock, metrics } = this.#path.deps;
    this.#answered();
    x.committed = true;
    x.streaming = contentType !== undefined;
    x.status = 200;
    x.firstContentAt = this.attempt.firstContentAt = clock.mono();
    if (x.streaming) this.#observeTime();
    if (x.degraded !== undefined) metrics.degraded.of(x.route!.name, x.degraded).add();
    this.#path.step(x, 'answer', 'committed', {});
    const passed = passedBack(headers);
    if (contentType !== undefined) {
      const at = passed.indexOf('content-type');
      if (at >= 0) passed.splice(at, 2);
      const cache = passed.indexOf('cache-control');
      if (cache >= 0) passed.splice(cache, 2);
      passed.push(...STREAM_TYPE);
    }
    x.caller.onDrain = () => x.attempt?.resume();
    this.#path.addHeaders(x, passed);
    x.caller.open(200, passed);
    this.#path.watchTime(x);
    if (x.streaming) {
      const { attempt } = this;
      this.#begun = true;
      attempt.endpoint.began(attempt, x.cost.tokensIn, x.route!.settings.deadline, x.firstContentAt);
    }
  }

  hold(bytes: number): boolean {
    const { buffers } = this.#path.deps;
    if (!buffers.take(bytes)) return false;
    // A slow reader holds it until the last of it has left.
    this.#x.caller.whenClosed(() => buffers.give(bytes));
    return true;
  }

  write(piece: Buffer | string): void {
    const x = this.#x;
    if (x.over) return;
    x.listener?.piece(piece);
    if (!x.caller.write(piece)) x.attempt?.pause();
  }

  respond(headers: UpstreamHeaders, body: Buffer): void {
    const x = this.#x;
    if (x.over) return;
    this.#answered();
    x.status = 200;
    x.firstContentAt = this.#path.deps.clock.mono();
    x.outcome = this.#outcome();
    this.#learn();
    if (x.degraded !== undefined) this.#path.deps.metrics.degraded.of(x.route!.name, x.degraded).add();
    const passed = passedBack(headers);
    this.#path.addHeaders(x, passed);
    x.listener?.whole(200, headers, body);
    x.caller.respond(200, passed, body);
    this.#path.step(x, 'answer', 'answered', { bytes: body.length });
    this.#path.finish(x);
  }

  count(tokensIn: number | undefined, tokensOut: number | undefined): void {
    this.#x.tokensIn = tokensIn;
    this.#x.tokensOut = tokensOut;
  }

  done(): void {
    const x = this.#x;
    if (x.over) return;
    x.outcome = this.#outcome();
    this.#learn();
    x.attempt?.linger();
    x.listener?.done();
    x.caller.end();
    this.#path.step(x, 'answer', 'answered', {});
    this.#path.finish(x);
  }

  failed(failure: AttemptFailure): void {
    this.attempt.giveUp(failure);
    this.#suspect(failure);
    recover(this.#path, this.#x, this.attempt, failure);
  }

  broken(failure: AttemptFailure, told: boolean): void {
    const x = this.#x;
    this.attempt.giveUp(failure);
    this.#suspect(failure);
    if (x.armed) noteFailedAttempt(x, failure);
    this.#path.step(x, 'attempt', failure.code, { backend: x.backend!.name, committed: true });
    breakOff(this.#path, x, { ...failure.failure, phase: 'committed' }, told);
  }

  /** A host of ours that does not take connections has died or leaves. */
  #suspect({ code }: AttemptFailure): void {
    const { backend } = this.attempt;
    if (backend.host && GONE_CODES.has(code)) this.#path.deps.world.suspect(backend);
  }

  /** This attempt has the answer: where another runs beside it, that one ends. */
  #answered(): void {
    const { hedge } = this.#x;
    this.#since = hedge === undefined ? this.attempt.startedAt : hedge.answered(this.attempt);
  }

  /** What such an answer takes; not one that was made shorter than it would have been. */
  #observeTime(): void {
    const x = this.#x;
    if (!x.streaming && x.outputTokensMax !== undefined) return;
    const { backend } = this.attempt;
    x.route!.times.observe(x.call!, backend.name, this.#path.deps.clock.mono() - this.#since);
  }

  /** Tells what the answered attempt took. */
  #learn(): void {
    const x = this.#x;
    const { attempt } = this;
    if (!x.streaming) this.#observeTime();
    const call = x.call!;
    const now = this.#path.deps.clock.mono();
    const { startedAt, firstContentAt } = attempt;
    const streamed = x.streaming && firstContentAt !== undefined;
    tellServed(attempt, x, now);
    const aboutMs = streamed ? firstContentAt - startedAt : now - startedAt;
    attempt.backend.line.service.observe(serviceKind(call), serviceSize(call, x.cost), aboutMs, now);
    if (x.route!.hold) tellHold(x, now - startedAt, now);
    const { usualOut } = x.route!;
    if (x.tokensOut !== undefined && x.degraded === undefined) {
      const tokens = call.protocol === 'openai' ? x.tokensOut / call.request.choices : x.tokensOut;
      const weight = Math.max(USUAL_WEIGHT, 1 / ++usualOut.answers);
      const before = usualOut.value ?? tokens;
      usualOut.value = before + weight * (tokens - before);
    }
  }

  #outcome(): 'ok' | 'degraded' {
    return this.#x.degraded === undefined ? 'ok' : 'degraded';
  }
}

/** Ends an answer that has begun and cannot be made whole. `told`: the caller has had an error event already. */
export function breakOff(path: Path, x: Exchange, failure: Failure, told = false): void {
  if (x.over) return;
  x.failure = failure;
  x.outcome = 'failed';
  if (x.streaming) {
    if (!told) x.caller.write(openaiErrorEvent(failure));
    x.caller.end();
  } else x.caller.destroy(); // a document cut short must be seen to be so
  path.step(x, 'answer', failure.code, { phase: 'committed' });
  path.finish(x);
}
