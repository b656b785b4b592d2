import type { Clock } from '../kernel/clock.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { LoadRequest, Outcome, Sender } from './contracts.ts';
import { Recorder, type Tally } from './recorder.ts';
import type { Sample } from './samples.ts';
import type { Intended } from './schedule.ts';

export interface RunSettings {
  /** Requests in intended order. It may be endless. */
  schedule: Iterator<Intended>;
  /** Undefined: an open loop, which sends at the intended times whatever comes back. */
  concurrency: number | undefined;
  /** Requests on their way at most; an open loop drops further ones, and counts them. */
  inflightMax: number;
  /** Milliseconds that are not counted, before those that are. */
  warmupMs: number;
  durationMs: number;
  /** Requests at most, those of the warm-up included. */
  countMax: number;
  /** Milliseconds from sending to the end of an answer; also how long the last ones may take after the end. */
  timeoutMs: number;
  deadlineMs: number;
  compose(intended: Intended): LoadRequest;
  /** Told of each counted request whose answer came whole. */
  onSample?: (sample: Sample) => void;
}

/** How far a run has come. */
export interface Progress {
  elapsedMs: number;
  warming: boolean;
  sent: number;
  inflight: number;
  ended: number;
  failed: number;
}

export interface RunResult {
  tally: Tally;
  /** Milliseconds that were counted. */
  measuredMs: number;
  /** The last of the counted requests ended so many milliseconds after the start of the count. */
  settledMs: number;
}

interface Flight {
  counted: boolean;
  intendedAt: number;
  sentAt: number | undefined;
  firstTokenAt: number | undefined;
  lastTokenAt: number;
  promptTokens: number;
  abort: () => void;
  timer: TimerHandle;
}

/**
 * Puts a load on an address. Latency counts from the moment at which a request was meant to be sent, so that a server
 * that stalls is charged with all who would have come meanwhile (no coordinated omission). In a closed loop a request is
 * meant to be sent when the one before it has ended: it cannot show how long others would have waited.
 */
export class Run {
  readonly #settings: RunSettings;
  readonly #sender: Sender;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #recorder: Recorder;
  readonly #flights = new Set<Flight>();
  readonly #startAt: number;
  #next: IteratorResult<Intended>;
  #sent = 0;
  #ended = 0;
  #failed = 0;
  #stopAt: number;
  #lastEndAt = 0;
  #timer: TimerHandle;
  #over: ((result: RunResult) => void) | undefined;

  constructor(settings: RunSettings, sender: Sender, clock: Clock, timers: Timers) {
    this.#settings = settings;
    this.#sender = sender;
    this.#clock = clock;
    this.#timers = timers;
    this.#recorder = new Recorder(settings.deadlineMs);
    this.#startAt = clock.mono();
    this.#stopAt = this.#startAt + settings.warmupMs + settings.durationMs;
    this.#next = settings.schedule.next();
  }

  /** Resolves once every request has ended, at the latest `timeoutMs` after the duration. Once only. */
  start(): Promise<RunResult> {
    return new Promise((resolve) => {
      this.#over = resolve;
      const { concurrency } = this.#settings;
      if (concurrency === undefined) {
        this.#pump();
        return;
      }
      this.#timer = this.#timers.set(this.#stopAt - this.#clock.mono(), () => this.#finish());
      for (let i = 0; i < concurrency; i++) this.#sendNext();
      this.#settle(); // the schedule may be over already
    });
  }

  /** Sends nothing more and breaks off what is on its way; the promise of `start` resolves. */
  stop(): void {
    for (const flight of [...this.#flights]) this.#abandon(flight);
    this.#finish();
  }

  progress(): Progress {
    const elapsedMs = this.#clock.mono() - this.#startAt;
    return {
      elapsedMs,
      warming: elapsedMs < this.#settings.warmupMs,
      sent: this.#sent,
      inflight: this.#flights.size,
      ended: this.#ended,
      failed: this.#failed,
    };
  }

  /** Nothing more is sent from now on. */
  #finish(): void {
    this.#timers.clear(this.#timer);
    this.#stopAt = Math.min(this.#stopAt, this.#clock.mono());
    this.#settle();
  }

  /** Sends all that is due and waits for the next. */
  #pump(): void {
    const now = this.#clock.mono();
    while (!this.#exhausted() && this.#intendedAt() <= now && this.#intendedAt() < this.#stopAt) {
      this.#launch(this.#next.value as Intended, this.#intendedAt());
    }
    if (this.#exhausted() || this.#intendedAt() >= this.#stopAt) {
      this.#timer = this.#timers.set(Math.max(0, this.#stopAt - now), () => this.#finish());
      return;
    }
    this.#timer = this.#timers.set(this.#intendedAt() - now, () => this.#pump());
  }

  #intendedAt(): number {
    return this.#startAt + (this.#next.value as Intended).atMs;
  }

  #exhausted(): boolean {
    return this.#next.done === true || this.#sent >= this.#settings.countMax;
  }

  /** A closed loop's next request. */
  #sendNext(): void {
    const now = this.#clock.mono();
    if (this.#exhausted() || now >= this.#stopAt) return;
    this.#launch(this.#next.value as Intended, now);
  }

  #launch(intended: Intended, intendedAt: number): void {
    this.#next = this.#settings.schedule.next();
    this.#sent++;
    const counted = intendedAt >= this.#startAt + this.#settings.warmupMs;
    if (counted) this.#recorder.intend();
    if (this.#flights.size >= this.#settings.inflightMax) {
      if (counted) this.#recorder.drop();
      return;
    }
    const flight: Flight = {
      counted,
      intendedAt,
      sentAt: undefined,
      firstTokenAt: undefined,
      lastTokenAt: 0,
      promptTokens: intended.promptTokens,
      abort: () => {},
      timer: undefined,
    };
    this.#flights.add(flight);
    flight.timer = this.#timers.set(this.#settings.timeoutMs, () => {
      flight.abort();
      this.#end(flight, { status: 0, failure: 'timeout', degraded: undefined, outputTokens: 0 });
    });
    flight.abort = this.#sender.send(this.#settings.compose(intended), {
      onSent: () => {
        flight.sentAt ??= this.#clock.mono();
      },
      onToken: () => this.#token(flight),
      onEnd: (outcome) => this.#end(flight, outcome),
    });
  }

  #token(flight: Flight): void {
    const now = this.#clock.mono();
    if (flight.firstTokenAt === undefined) flight.firstTokenAt = now;
    else if (flight.counted) this.#recorder.gap(now - flight.lastTokenAt);
    flight.lastTokenAt = now;
  }

  #end(flight: Flight, outcome: Parameters<Recorder['end']>[1]): void {
    if (!this.#take(flight)) return;
    this.#ended++;
    if (outcome.failure !== undefined) this.#failed++;
    if (flight.counted) {
      this.#lastEndAt = this.#clock.mono();
      this.#recorder.end({ ...flight, endedAt: this.#lastEndAt }, outcome);
      if (outcome.failure === undefined) this.#settings.onSample?.(this.#sample(flight, outcome));
    }
    if (this.#settings.concurrency !== undefined) this.#sendNext();
    this.#settle();
  }

  #sample({ intendedAt, firstTokenAt, promptTokens }: Flight, { readTokens, outputTokens }: Outcome): Sample {
    const ms = (value: number) => Math.round(value * 1000) / 1000;
    return {
      timestamp: ms(intendedAt - this.#startAt - this.#settings.warmupMs),
      input_length: readTokens ?? promptTokens,
      output_length: outputTokens,
      stream: firstTokenAt !== undefined,
      ...(firstTokenAt !== undefined && { first_token_ms: ms(firstTokenAt - intendedAt) }),
      total_ms: ms(this.#lastEndAt - intendedAt),
    };
  }

  #abandon(flight: Flight): void {
    if (!this.#take(flight)) return;
    flight.abort();
    if (flight.counted) this.#recorder.abandon({ ...flight, endedAt: this.#clock.mono() });
  }

  #take(flight: Flight): boolean {
    this.#timers.clear(flight.timer);
    return this.#flights.delete(flight);
  }

  /** Ends the run when nothing more is to be sent and nothing is on its way. */
  #settle(): void {
    const now = this.#clock.mono();
    if (!this.#over || this.#flights.size > 0) return;
    if (now < this.#stopAt && !this.#exhausted()) return;
    this.#timers.clear(this.#timer);
    const over = this.#over;
    this.#over = undefined;
    const countedFrom = this.#startAt + this.#settings.warmupMs;
    const end = this.#exhausted() ? Math.max(this.#lastEndAt, countedFrom) : this.#stopAt;
    over({
      tally: this.#recorder.tally(),
      measuredMs: Math.max(0, Math.min(end, this.#stopAt) - countedFrom),
      settledMs: Math.max(0, this.#lastEndAt - countedFrom),
    });
  }
}
