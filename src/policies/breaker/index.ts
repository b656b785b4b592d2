import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

/** Failures in a row that open it. */
const FAILURES_MAX = 5;
/** Or this share of failures among at least so many answers of a window. */
const FAILURE_SHARE_MAX = 0.5;
const WINDOW_ANSWERS_MIN = 20;
const WINDOW_MS = 10_000;
/** How long it stays open, doubling with each opening in a row, plus or minus a fifth. */
const OPEN_MS_FIRST = 1_000;
const OPEN_MS_MAX = 30_000;
const JITTER = 0.2;

export type BreakerState = 'closed' | 'open' | 'half-open';
export type BreakerChoice = 'pass' | 'trial' | 'fenced';
export type BreakerObservation = { kind: 'success' | 'failure' | 'abandoned'; trial: boolean };

/**
 * The breaker of one endpoint. Closed, everything passes; open, nothing; after a while one request at a time is let
 * through on trial, and its answer closes or opens it again. A caller's own mistakes are never reported to it.
 */
export class Breaker implements Policy<undefined, BreakerChoice, BreakerObservation> {
  readonly name = 'breaker';
  readonly version = 1;
  state: BreakerState = 'closed';
  #openUntil = 0;
  #openings = 0;
  #inARow = 0;
  #trying = false;
  #windowStart = 0;
  #answers = 0;
  #failures = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Milliseconds until a request may be tried; 0 when one may now. */
  waitMs(now: number): number {
    if (this.state === 'closed') return 0;
    if (this.state === 'half-open') return this.#trying ? Number.POSITIVE_INFINITY : 0;
    return Math.max(0, this.#openUntil - now);
  }

  decide(_input: undefined, now: number): Decision<BreakerChoice> {
    if (this.state === 'closed') return { choice: 'pass', reason: { code: 'breaker-closed', figures: {} } };
    if (this.waitMs(now) > 0) {
      return {
        choice: 'fenced',
        reason: { code: 'breaker-open', figures: { forMs: Math.max(0, Math.ceil(this.#openUntil - now)) } },
      };
    }
    this.state = 'half-open';
    this.#trying = true;
    return { choice: 'trial', reason: { code: 'breaker-trial', figures: { openings: this.#openings } } };
  }

  observe({ kind, trial }: BreakerObservation, now: number): void {
    if (trial) this.#trying = false;
    if (kind === 'abandoned') return;
    if (now - this.#windowStart > WINDOW_MS) {
      this.#windowStart = now;
      this.#answers = this.#failures = 0;
    }
    this.#answers++;
    if (kind === 'success') {
      this.#inARow = 0;
      if (this.state === 'half-open' && trial) this.#close();
      return;
    }
    this.#failures++;
    this.#inARow++;
    if (this.state === 'half-open' && trial) this.#open(now);
    else if (this.state === 'closed' && (this.#inARow >= FAILURES_MAX || this.#isOutlier())) this.#open(now);
  }

  /** What opened it, for the record. */
  figures(): { inARow: number; failures: number; answers: number; openings: number } {
    return {
      inARow: this.#inARow,
      failures: this.#failures,
      answers: this.#answers,
      openings: this.#openings,
    };
  }

  #isOutlier(): boolean {
    return this.#answers >= WINDOW_ANSWERS_MIN && this.#failures / this.#answers >= FAILURE_SHARE_MAX;
  }

  #open(now: number): void {
    const base = Math.min(OPEN_MS_MAX, OPEN_MS_FIRST * 2 ** this.#openings);
    this.state = 'open';
    this.#openings++;
    this.#openUntil = now + base * (1 - JITTER + 2 * JITTER * this.#random.next());
  }

  #close(): void {
    this.state = 'closed';
    this.#openings = 0;
    this.#inARow = 0;
    this.#answers = this.#failures = 0;
  }
}
