import { systemClock } from '../../src/kernel/clock.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import type { LoadRequest, Outcome, Sender } from '../../src/load/contracts.ts';
import { openaiRequests } from '../../src/load/requests.ts';
import type { Intended } from '../../src/load/schedule.ts';
import { openSender } from '../../src/load/sender.ts';
import { Durations } from '../../src/telemetry/durations.ts';

/** One kind of traffic: what it sends, and when. */
export interface Stream {
  name: string;
  schedule: Iterator<Intended>;
  headers: Record<string, string>;
}

export interface OfferSettings {
  /** `http://HOST:PORT` */
  origin: string;
  model: string;
  forMs: number;
  /** An answer after this is no good. */
  deadlineMs: number;
  connections: number;
  /** Streamed answers; else whole ones. */
  streamed: boolean;
  /** What is asked. Default: prompts of random words. */
  compose?: (intended: Intended) => LoadRequest;
}

/** What became of one kind of traffic. */
export interface Result {
  name: string;
  offered: number;
  /** Full answers within the deadline. */
  good: number;
  /** Full answers after it. */
  late: number;
  /** Answers of a rung, labelled so. */
  degraded: number;
  /** Those of them that came after the deadline. */
  degradedLate: number;
  /** How often each label was seen. */
  labels: Record<string, number>;
  /** 429 and 503. */
  refused: number;
  /** 504. */
  timedOut: number;
  /** No answer within the deadline and a second. */
  hung: number;
  /** Everything else: other statuses, cut and broken answers. */
  failed: number;
  failures: Record<string, number>;
  /** Milliseconds from sending. */
  total: { p50: number; p99: number };
  /** Of full and labelled answers together, to their ends. */
  answer: { p50: number; p99: number; max: number };
  firstToken: { p50: number; p99: number };
  refusal: { p50: number; p99: number };
  /** Good answers and offers in each second. */
  seconds: { offered: number; good: number }[];
}

/** How long after its deadline an answer is waited for, milliseconds. */
const GRACE_MS = 1000;

/**
 * Offers traffic in an open loop: requests are sent at their times whatever comes back, and latency counts from those
 * times. Resolves when every request has ended.
 */
export function offer(streams: readonly Stream[], settings: OfferSettings): Promise<Result[]> {
  return Promise.all(streams.map((stream, at) => new Offer(stream, settings, at + 1).result));
}

class Offer {
  readonly result: Promise<Result>;
  readonly #stream: Stream;
  readonly #settings: OfferSettings;
  readonly #sender: Sender;
  readonly #compose: (intended: Intended) => LoadRequest;
  readonly #total = new Durations();
  readonly #answer = new Durations();
  readonly #firstToken = new Durations();
  readonly #refusal = new Durations();
  readonly #counts = {
    offered: 0,
    good: 0,
    late: 0,
    degraded: 0,
    degradedLate: 0,
    refused: 0,
    timedOut: 0,
    hung: 0,
    failed: 0,
  };
  readonly #failures: Record<string, number> = {};
  readonly #labels: Record<string, number> = {};
  readonly #seconds: { offered: number; good: number }[] = [];
  readonly #begin = systemClock.mono();
  #next: IteratorResult<Intended>;
  #open = 0;
  #resolve: (result: Result) => void = () => {};

  constructor(stream: Stream, settings: OfferSettings, seed: number) {
    const { origin, model, connections, streamed } = settings;
    this.#stream = stream;
    this.#settings = settings;
    this.#compose =
      settings.compose ??
      openaiRequests({ base: '/v1', model, kind: 'chat', stream: streamed }, seededRandom(seed));
    this.#sender = openSender(origin, { connections, headers: stream.headers });
    this.#next = stream.schedule.next();
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#pump();
  }

  /** Sends all that is due, and waits for the next. */
  #pump(): void {
    const { forMs } = this.#settings;
    const elapsed = systemClock.mono() - this.#begin;
    let next = this.#next;
    while (next.done !== true && next.value.atMs <= elapsed && next.value.atMs < forMs) {
      this.#send(next.value);
      next = this.#stream.schedule.next();
    }
    this.#next = next;
    if (this.#exhausted) this.#end();
    else systemTimers.set(next.value!.atMs - elapsed, () => this.#pump());
  }

  get #exhausted(): boolean {
    return this.#next.done === true || this.#next.value.atMs >= this.#settings.forMs;
  }

  #send(intended: Intended): void {
    const at = this.#begin + intended.atMs;
    const second = (this.#seconds[Math.floor(intended.atMs / 1000)] ??= { offered: 0, good: 0 });
    this.#counts.offered++;
    second.offered++;
    this.#open++;
    let first: number | undefined;
    let over = false;
    const close = (judge: () => void) => {
      if (over) return;
      over = true;
      systemTimers.clear(timer);
      judge();
      this.#open--;
      this.#end();
    };
    const lastMs = at - systemClock.mono() + this.#settings.deadlineMs + GRACE_MS;
    const timer = systemTimers.set(lastMs, () => {
      abort();
      close(() => this.#counts.hung++);
    });
    const abort = this.#sender.send(this.#compose(intended), {
      onSent() {},
      onToken() {
        first ??= systemClock.mono() - at;
      },
      onEnd: (outcome) => close(() => this.#judge(outcome, systemClock.mono() - at, first, second)),
    });
  }

  #judge(outcome: Outcome, tookMs: number, first: number | undefined, second: { good: number }): void {
    const { status, failure, degraded } = outcome;
    const counts = this.#counts;
    if (status === 429 || status === 503) {
      counts.refused++;
      this.#refusal.add(tookMs);
    } else if (status === 504) counts.timedOut++;
    else if (failure !== undefined) {
      counts.failed++;
      this.#failures[failure] = (this.#failures[failure] ?? 0) + 1;
    } else if (degraded !== undefined) {
      counts.degraded++;
      this.#labels[degraded] = (this.#labels[degraded] ?? 0) + 1;
      this.#answer.add(tookMs);
      if ((first ?? tookMs) > this.#settings.deadlineMs) counts.degradedLate++;
    } else {
      this.#total.add(tookMs);
      this.#answer.add(tookMs);
      if (first !== undefined) this.#firstToken.add(first);
      if ((first ?? tookMs) <= this.#settings.deadlineMs) {
        counts.good++;
        second.good++;
      } else counts.late++;
    }
  }

  #end(): void {
    if (this.#open > 0 || !this.#exhausted) return;
    void this.#sender.close();
    this.#resolve({
      name: this.#stream.name,
      ...this.#counts,
      failures: this.#failures,
      labels: this.#labels,
      total: ends(this.#total),
      answer: ends(this.#answer),
      firstToken: ends(this.#firstToken),
      refusal: ends(this.#refusal),
      seconds: this.#seconds,
    });
  }
}

/** The middle and the end of what was measured; 0 where nothing was. */
function ends(durations: Durations): { p50: number; p99: number; max: number } {
  const { p50 = 0, p99 = 0, max = 0 } = durations.spread() ?? {};
  return { p50, p99, max };
}

/** Two schedules of a run: the share `critical` of the arrivals, drawn at random, and the others. */
export function* thinned(schedule: Iterator<Intended>, keep: () => boolean): Generator<Intended> {
  for (let next = schedule.next(); next.done !== true; next = schedule.next()) if (keep()) yield next.value;
}
