import { assert } from '../../kernel/assert.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Random, seededRandom } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import { type AcceleratorProfile, STEP_TOKENS_MAX, stepMs } from './step.ts';

/** Jobs that wait for a place at most; further ones are refused. */
export const WAITING_MAX = 4096;
/** How far steps may lag behind real time before the time lost is given up instead of being caught up with. */
const LAG_MS_MAX = 1000;

export interface Job {
  /** 1 or more. */
  promptTokens: number;
  /** Tokens to generate; 0 where only the prompt is read, as for an embedding. */
  outputTokens: number;
}

/** Hears what becomes of a job; never within the call of `submit`, and nothing after `onEnd`, `onFault` or a cancel. */
export interface JobSink {
  /** Called once for each token, `index` from 0. */
  onToken(index: number): void;
  onEnd(): void;
  /** `error`: it failed before its first token. `reset`: it was cut off, perhaps after some. */
  onFault(fault: 'error' | 'reset'): void;
}

export interface RunningJob {
  /** Gives its place and its tokens back at once. Harmless once it has ended. */
  cancel(): void;
}

/** What an engine's gauges would say. */
export interface AcceleratorLoad {
  running: number;
  waiting: number;
  /** Tokens that running sequences hold, of `kvTokensMax`. */
  kvTokens: number;
  promptTokensTotal: number;
  outputTokensTotal: number;
}

interface Sequence {
  job: Job;
  sink: JobSink;
  state: 'waiting' | 'running' | 'over';
  prompted: number;
  generated: number;
  /** The token before which it is cut off. */
  cutAt: number;
  /** Prompt tokens of the step under way; 0 for a step that decodes, undefined when it has no part in it. */
  share: number | undefined;
}

/**
 * A simulated accelerator with continuous batching: a model of time, not of meaning. Its formulas are in step.ts and
 * README.md. The same seed and the same calls at the same times give the same events.
 */
export class Accelerator {
  readonly #profile: AcceleratorProfile;
  readonly #clock: Clock;
  readonly #timers: Timers;
  // Each kind of chance has a generator of its own, so that how steps fall does not change which job fails.
  readonly #jitter: Random;
  readonly #faults: Random;
  readonly #waiting = new Set<Sequence>();
  readonly #running = new Set<Sequence>();
  readonly #errors = new Map<Sequence, TimerHandle>();
  #kvTokens = 0;
  #promptTokensTotal = 0;
  #outputTokensTotal = 0;
  /** When the step under way ends, or the last one ended; before the first, when the cold start is over. */
  #stepEnd: number;
  #timer: TimerHandle;
  #stepping = false;

  constructor(profile: AcceleratorProfile, clock: Clock, timers: Timers, random: Random) {
    this.#profile = profile;
    this.#clock = clock;
    this.#timers = timers;
    this.#jitter = seededRandom(random.next() * 2 ** 32);
    this.#faults = seededRandom(random.next() * 2 ** 32);
    this.#stepEnd = clock.mono() + profile.coldStart;
  }

  /** Whether the job could ever run: its prompt and answer together are within the KV limit. */
  fits(job: Job): boolean {
    return job.promptTokens + job.outputTokens <= this.#profile.kvTokensMax;
  }

  /** Takes a job that fits; undefined when WAITING_MAX jobs wait already. */
  submit(job: Job, sink: JobSink): RunningJob | undefined {
    assert(job.promptTokens >= 1 && job.outputTokens >= 0, 'a job has a prompt');
    assert(this.fits(job), 'a job fits into the KV limit');
    if (this.#waiting.size >= WAITING_MAX) return undefined;
    const fate = this.#faults.next();
    const cut = this.#faults.next(); // drawn for each job, so that rates do not change which draw is whose
    const { errorRate, resetRate, stallRate } = this.#profile.faults;
    const sequence: Sequence = {
      job,
      sink,
      state: 'waiting',
      prompted: 0,
      generated: 0,
      cutAt: Number.POSITIVE_INFINITY,
      share: undefined,
    };
    if (fate < errorRate) {
      const answer = this.#timers.set(0, () => this.#fail(sequence, 'error'));
      this.#errors.set(sequence, answer);
    } else if (fate < errorRate + resetRate) {
      sequence.cutAt = Math.floor(cut * job.outputTokens);
      this.#enqueue(sequence);
    } else if (fate >= errorRate + resetRate + stallRate) {
      this.#enqueue(sequence);
    } // else it stalls: nobody will ever hear of it, and it holds nothing
    return { cancel: () => this.#leave(sequence) };
  }

  load(): AcceleratorLoad {
    return {
      running: this.#running.size,
      waiting: this.#waiting.size,
      kvTokens: this.#kvTokens,
      promptTokensTotal: this.#promptTokensTotal,
      outputTokensTotal: this.#outputTokensTotal,
    };
  }

  /** Cancels every job and stops. */
  close(): void {
    for (const sequence of [...this.#errors.keys(), ...this.#running, ...this.#waiting])
      this.#leave(sequence);
    this.#timers.clear(this.#timer);
    this.#stepping = false;
  }

  #enqueue(sequence: Sequence): void {
    this.#waiting.add(sequence);
    if (!this.#stepping) this.#begin();
  }

  /** Starts a step after a time without work, not before the cold start is over. */
  #begin(): void {
    const now = this.#clock.mono();
    this.#stepEnd = Math.max(this.#stepEnd, now);
    this.#stepping = true;
    // Planned once the caller's turn is over, so that jobs that come together start together.
    this.#timer = this.#timers.set(this.#stepEnd - now, () => this.#next());
  }

  /** Plans the next step and waits for its end; steps that should have ended already follow each other at once. */
  #next(): void {
    for (;;) {
      const durationMs = this.#plan();
      this.#stepping = durationMs !== undefined;
      if (durationMs === undefined) return;
      const now = this.#clock.mono();
      if (now - this.#stepEnd > LAG_MS_MAX) this.#stepEnd = now;
      this.#stepEnd += durationMs;
      if (this.#stepEnd > now) {
        this.#await(now);
        return;
      }
      this.#finish();
    }
  }

  /** Ends are reckoned from each other, not from when timers fire, so that late timers do not slow the accelerator. */
  #await(now: number): void {
    this.#timer = this.#timers.set(this.#stepEnd - now, () => {
      const then = this.#clock.mono();
      if (then < this.#stepEnd) {
        this.#await(then); // timers may fire a fraction early
      } else {
        this.#finish();
        this.#next();
      }
    });
  }

  /** Lets waiting sequences in and shares out the step's tokens; its length, or undefined when there is nothing to do. */
  #plan(): number | undefined {
    this.#admit();
    let decodes = 0;
    for (const sequence of this.#running) {
      if (sequence.prompted < sequence.job.promptTokens) continue;
      sequence.share = 0;
      decodes++;
    }
    let left = Math.max(1, STEP_TOKENS_MAX - decodes);
    let prefillTokens = 0;
    for (const sequence of this.#running) {
      const share = Math.min(left, sequence.job.promptTokens - sequence.prompted);
      if (share === 0) continue;
      sequence.share = share;
      prefillTokens += share;
      left -= share;
    }
    if (decodes + prefillTokens === 0) return undefined;
    const swing = 1 + this.#profile.jitter * (2 * this.#jitter.next() - 1);
    return stepMs(this.#profile, prefillTokens, decodes) * swing;
  }

  /** First come, first served: one that does not fit yet holds back those behind it, so that none starves. */
  #admit(): void {
    for (const sequence of this.#waiting) {
      const tokens = sequence.job.promptTokens + sequence.job.outputTokens;
      if (this.#running.size >= this.#profile.batchMax) return;
      if (this.#kvTokens + tokens > this.#profile.kvTokensMax) return;
      this.#waiting.delete(sequence);
      this.#running.add(sequence);
      sequence.state = 'running';
      this.#kvTokens += tokens;
    }
  }

  /** Gives every sequence of the step what it brought. Sinks may cancel and submit jobs meanwhile. */
  #finish(): void {
    for (const sequence of [...this.#running]) {
      const share = sequence.share;
      if (share === undefined || sequence.state !== 'running') continue;
      sequence.share = undefined;
      sequence.prompted += share;
      this.#promptTokensTotal += share;
      if (sequence.prompted === sequence.job.promptTokens) this.#advance(sequence);
    }
  }

  /** The step that ends a prompt brings the first token; each later one brings one more. */
  #advance(sequence: Sequence): void {
    if (sequence.generated >= sequence.cutAt) {
      this.#fail(sequence, 'reset');
      return;
    }
    if (sequence.job.outputTokens > 0) {
      this.#outputTokensTotal++;
      sequence.sink.onToken(sequence.generated++);
    }
    if (sequence.state === 'running' && sequence.generated === sequence.job.outputTokens) {
      this.#leave(sequence);
      sequence.sink.onEnd();
    }
  }

  #fail(sequence: Sequence, fault: 'error' | 'reset'): void {
    this.#leave(sequence);
    sequence.sink.onFault(fault);
  }

  #leave(sequence: Sequence): void {
    if (sequence.state === 'over') return;
    if (sequence.state === 'running') this.#kvTokens -= sequence.job.promptTokens + sequence.job.outputTokens;
    sequence.state = 'over';
    this.#running.delete(sequence);
    this.#waiting.delete(sequence);
    this.#timers.clear(this.#errors.get(sequence));
    this.#errors.delete(sequence);
  }
}
