import type { Clock } from '../../kernel/clock.ts';
import type { Observation } from '../../links/messages.ts';
import { sessionHash } from '../../policies/canary-arm/index.ts';
import { sessionOf } from '../admit.ts';
import type { BufferBudget } from '../buffer-budget.ts';
import type { AnswerListener, UpstreamHeaders } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { Heard } from '../shadow/heard.ts';
import { readSeen } from './reading.ts';
import type { DriftRules } from './rules.ts';

/** Where observations go; never waits, never fails. */
export interface ObservationSink {
  push(observation: Observation): void;
}

export interface RouteDriftDeps {
  clock: Clock;
  buffers: BufferBudget;
  observations: ObservationSink;
}

/** Sessions that are remembered as observed, by their hash: one whose place another takes is observed again. */
const SESSIONS = 1024;

/** Observes a bounded number of a route's answers: only those of engines, in full, and one of a session. */
export class RouteDrift {
  rules: DriftRules;
  readonly #route: string;
  readonly #deps: RouteDriftDeps;
  readonly #sessions = new Uint32Array(SESSIONS);
  #windowEndsAt = Number.NEGATIVE_INFINITY;
  #left = 0;

  constructor(route: string, rules: DriftRules, deps: RouteDriftDeps) {
    this.#route = route;
    this.rules = rules;
    this.#deps = deps;
  }

  /** To be called when a request is sent for the first time. */
  listen(x: Exchange): void {
    const call = x.call!;
    if (x.isCarrier || (call.protocol === 'oip' && call.kind !== 'infer') || !this.#wants(x)) return;
    const heard = new Heard(x, this.#deps.buffers, x.listener);
    x.scope.add(() => heard.release());
    x.listener = new Observer(heard, () => this.#observe(x, heard));
  }

  #wants(x: Exchange): boolean {
    const now = this.#deps.clock.mono();
    if (now >= this.#windowEndsAt) {
      this.#windowEndsAt = now + this.rules.windowMs;
      this.#left = this.rules.answersMax;
    }
    if (this.#left < 1) return false;
    const session = x.terms?.session ?? sessionOf(x);
    if (session !== undefined) {
      const hash = sessionHash(this.#route, `${x.tenant}/${session}`);
      const at = hash % SESSIONS;
      if (this.#sessions[at] === hash) return false;
      this.#sessions[at] = hash;
    }
    this.#left--;
    return true;
  }

  #observe(x: Exchange, heard: Heard): void {
    const { answer } = heard;
    // An answer that was made shorter is not what the backend would have given.
    if (!answer || !x.backend || x.outputTokensMax !== undefined) return;
    const seen = readSeen(this.rules, x, answer);
    const { id, requestId } = x;
    this.#deps.observations.push({
      route: this.#route,
      backend: x.backend.name,
      model: x.backend.model,
      request: id,
      ...(requestId !== id && { requestId }),
      ...seen,
    });
  }
}

/** Hears an answer out, and then says so. */
class Observer implements AnswerListener {
  readonly #heard: Heard;
  readonly #whole: () => void;

  constructor(heard: Heard, whole: () => void) {
    this.#heard = heard;
    this.#whole = whole;
  }

  whole(status: number, headers: UpstreamHeaders, body: Buffer): void {
    this.#heard.whole(status, headers, body);
    this.#whole();
  }

  piece(bytes: Buffer | string): void {
    this.#heard.piece(bytes);
  }

  done(): void {
    this.#heard.done();
    this.#whole();
  }
}
