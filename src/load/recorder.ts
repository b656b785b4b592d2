import { Durations, type Spread } from '../telemetry/durations.ts';
import type { Outcome } from './contracts.ts';

/** What was measured of one run, its warm-up left out. */
export interface Tally {
  /** Requests whose intended time lies within the run. */
  intended: number;
  /** Of these: written to a connection more than LATE_MS after their intended time. */
  late: number;
  /** Of these: never sent, because too many were on their way. */
  dropped: number;
  /** Of these: still on their way when the run was ended. */
  unfinished: number;
  ok: number;
  failed: number;
  statuses: Record<string, number>;
  failures: Record<string, number>;
  degraded: Record<string, number>;
  /** OK within the deadline. */
  good: number;
  promptTokens: number;
  outputTokens: number;
  sendDelay: Spread | undefined;
  firstToken: Spread | undefined;
  betweenTokens: Spread | undefined;
  total: Spread | undefined;
}

/** Later than this a request counts as late. Its latency counts from its intended time all the same. */
export const LATE_MS = 10;

/** The life of one request, in milliseconds of one clock. */
export interface Timeline {
  intendedAt: number;
  sentAt: number | undefined;
  firstTokenAt: number | undefined;
  endedAt: number;
  promptTokens: number;
}

/** Counts what happens to the requests of a run. */
export class Recorder {
  readonly #deadlineMs: number;
  readonly #sendDelay = new Durations();
  readonly #firstToken = new Durations();
  readonly #betweenTokens = new Durations();
  readonly #total = new Durations();
  readonly #counts = { intended: 0, late: 0, dropped: 0, unfinished: 0, ok: 0, failed: 0, good: 0 };
  readonly #tokens = { promptTokens: 0, outputTokens: 0 };
  readonly #statuses: Record<string, number> = {};
  readonly #failures: Record<string, number> = {};
  readonly #degraded: Record<string, number> = {};

  /** Goodput counts a stream by its first token and any other answer by its end, `deadlineMs` after the intended time. */
  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  intend(): void {
    this.#counts.intended++;
  }

  drop(): void {
    this.#counts.dropped++;
  }

  gap(ms: number): void {
    this.#betweenTokens.add(ms);
  }

  /** A request that ended. Percentiles are those of answers that came whole. */
  end(line: Timeline, outcome: Outcome): void {
    this.#send(line);
    if (outcome.status !== 0) bump(this.#statuses, String(outcome.status));
    if (outcome.degraded !== undefined) bump(this.#degraded, outcome.degraded);
    if (outcome.failure !== undefined) {
      this.#counts.failed++;
      bump(this.#failures, outcome.failure);
      return;
    }
    this.#counts.ok++;
    this.#tokens.promptTokens += line.promptTokens;
    this.#tokens.outputTokens += outcome.outputTokens;
    this.#total.add(line.endedAt - line.intendedAt);
    if (line.firstTokenAt !== undefined) this.#firstToken.add(line.firstTokenAt - line.intendedAt);
    if ((line.firstTokenAt ?? line.endedAt) - line.intendedAt <= this.#deadlineMs) this.#counts.good++;
  }

  /** One that was broken off because the run was over. */
  abandon(line: Timeline): void {
    this.#send(line);
    this.#counts.unfinished++;
  }

  #send({ intendedAt, sentAt, endedAt }: Timeline): void {
    const delay = (sentAt ?? endedAt) - intendedAt;
    if (delay > LATE_MS) this.#counts.late++;
    this.#sendDelay.add(delay);
  }

  tally(): Tally {
    return {
      ...this.#counts,
      ...this.#tokens,
      statuses: this.#statuses,
      failures: this.#failures,
      degraded: this.#degraded,
      sendDelay: this.#sendDelay.spread(),
      firstToken: this.#firstToken.spread(),
      betweenTokens: this.#betweenTokens.spread(),
      total: this.#total.spread(),
    };
  }
}

function bump(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1;
}
