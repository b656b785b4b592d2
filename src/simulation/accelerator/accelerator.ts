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
  /**
   * Only the first token is told, and the end. The times are the same; steps in which nobody hears anything are then
   * passed over at once.
   */
  readonly firstOnly?: boolean;
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
  /** Milliseconds in which steps ran. */
  busyMs: number;
}

interface Sequence {
  job: Job;
  sink: JobSink;
  state: 'waiting' | 'running' | 'over';
  prompted: number;
  /** The token before which it is cut off. */
  cutAt: number;
  /** Prompt tokens of the step under way. */
  share: number;
  /** Rounds of decoding that had been done when its first token came, less one: its tokens are the rounds since. */
  base: number;
}

/** Steps that are planned at once, at most. */
const STRETCH_MAX = 256;

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
  /** Those that run, in the order in which they were let in: still reading their prompts, and behind them in time none. */
  readonly #reading: Sequence[] = [];
  /** Those whose prompts are read; all were let in before those that read. */
  readonly #decoding: Sequence[] = [];
  readonly #errors = new Map<Sequence, TimerHandle>();
  #kvTokens = 0;
  #promptTokensTotal = 0;
  #outputTokensTotal = 0;
  #rounds = 0;
  #busyMs = 0;
  #busySince = 0;
  #pace = 1;
  /** When the step under way ends, or the last one ended; before the first, when the cold start is over. */
  #stepEnd: number;
  /**
   * The ends of the steps planned, and the swing of each. In all but the last nothing happens that anybody hears of; what
   * comes meanwhile (a job, a cancel) ends the stretch with the step under way, and the swings are kept for later.
   */
  #ends: number[] = [];
  #swings: number[] = [];
  readonly #unused: number[] = [];
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
      cutAt: Number.POSITIVE_INFINITY,
      share: 0,
      base: 0,
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

  /** How many times as long as the profile says each step takes from the next one on; 1 unless it was set. */
  set pace(times: number) {
    this.#interrupt();
    this.#pace = times;
  }

  load(): AcceleratorLoad {
    this.#catchUp();
    return {
      running: this.#reading.length + this.#decoding.length,
      waiting: this.#waiting.size,
      kvTokens: this.#kvTokens,
      promptTokensTotal: this.#promptTokensTotal,
      outputTokensTotal: this.#outputTokensTotal,
      busyMs: this.#busyMs + (this.#stepping ? Math.max(0, this.#clock.mono() - this.#busySince) : 0),
    };
  }

  /** Cancels every job and stops. */
  close(): void {
    const all = [...this.#errors.keys(), ...this.#decoding, ...this.#reading, ...this.#waiting];
    for (const sequence of all) this.#leave(sequence);
    this.#timers.clear(this.#timer);
    this.#ends = [];
    this.#stepping = false;
  }

  #enqueue(sequence: Sequence): void {
    this.#interrupt();
    this.#waiting.add(sequence);
    if (!this.#stepping) this.#begin();
  }

  /** Starts a step after a time without work, not before the cold start is over. */
  #begin(): void {
    const now = this.#clock.mono();
    this.#stepEnd = Math.max(this.#stepEnd, now);
    this.#stepping = true;
    this.#busySince = this.#stepEnd;
    // Planned once the caller's turn is over, so that jobs that come together start together.
    this.#timer = this.#timers.set(this.#stepEnd - now, () => this.#next());
  }

  /** Plans the next steps and waits for the last of them; steps that should have ended already follow each other at once. */
  #next(): void {
    for (;;) {
      this.#stepping = this.#plan();
      if (!this.#stepping) {
        this.#busyMs += Math.max(0, this.#stepEnd - this.#busySince);
        return;
      }
      const now = this.#clock.mono();
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

  /**
   * Lets waiting sequences in and shares out the step's tokens; false when there is nothing to do. Where all decode, nothing
   * changes until the first of them ends: all steps up to that one are planned.
   */
  #plan(): boolean {
    this.#admit();
    const decodes = this.#decoding.length;
    let left = Math.max(1, (this.#profile.stepTokensMax ?? STEP_TOKENS_MAX) - decodes);
    let prefillTokens = 0;
    for (const sequence of this.#reading) {
      const share = Math.min(left, sequence.job.promptTokens - sequence.prompted);
      sequence.share = share;
      prefillTokens += share;
      left -= share;
      if (left === 0) break;
    }
    if (decodes + prefillTokens === 0) return false;
    const steps = prefillTokens > 0 ? 1 : this.#quietSteps();
    const durationMs = stepMs(this.#profile, prefillTokens, decodes) * this.#pace;
    const now = this.#clock.mono();
    let end = now - this.#stepEnd > LAG_MS_MAX ? now : this.#stepEnd;
    for (let i = 0; i < steps; i++) {
      const swing = this.#swing();
      this.#swings.push(swing);
      end += durationMs * swing;
      this.#ends.push(end);
    }
    this.#stepEnd = end;
    return true;
  }

  #swing(): number {
    const { jitter } = this.#profile;
    if (jitter === 0) return 1;
    return this.#unused.pop() ?? 1 + jitter * (2 * this.#jitter.next() - 1);
  }

  /** Steps of decoding until somebody hears something. */
  #quietSteps(): number {
    let steps = STRETCH_MAX;
    for (const { base, job, cutAt, sink } of this.#decoding) {
      if (!sink.firstOnly) return 1;
      steps = Math.min(steps, base + Math.min(job.outputTokens, cutAt + 1) - this.#rounds);
    }
    return steps;
  }

  /** Counts the steps that have passed, the last of those planned left out: that one is finished by its timer. */
  #catchUp(): void {
    const now = this.#clock.mono();
    let passed = 0;
    while (passed < this.#ends.length - 1 && this.#ends[passed]! <= now) passed++;
    if (passed === 0) return;
    this.#ends.splice(0, passed);
    this.#swings.splice(0, passed);
    this.#rounds += passed;
    this.#outputTokensTotal += passed * this.#decoding.length;
  }

  /** Something changes: what was planned beyond the step under way is planned anew. */
  #interrupt(): void {
    if (this.#ends.length < 2) return;
    this.#catchUp();
    if (this.#ends.length < 2) return;
    for (let i = this.#swings.length - 1; i > 0; i--) {
      if (this.#profile.jitter > 0) this.#unused.push(this.#swings[i]!);
    }
    this.#ends.length = this.#swings.length = 1;
    this.#stepEnd = this.#ends[0]!;
    this.#timers.clear(this.#timer);
    this.#await(this.#clock.mono());
  }

  /** First come, first served: one that does not fit yet holds back those behind it, so that none starves. */
  #admit(): void {
    for (const sequence of this.#waiting) {
      const tokens = sequence.job.promptTokens + sequence.job.outputTokens;
      if (this.#reading.length + this.#decoding.length >= this.#profile.batchMax) return;
      if (this.#kvTokens + tokens > this.#profile.kvTokensMax) return;
      this.#waiting.delete(sequence);
      this.#reading.push(sequence);
      sequence.state = 'running';
      this.#kvTokens += tokens;
    }
  }

  /** Gives every sequence what the steps brought. Sinks may cancel and submit jobs meanwhile. */
  #finish(): void {
    const steps = this.#ends.length;
    this.#ends = [];
    this.#swings = [];
    this.#rounds += steps;
    this.#outputTokensTotal += (steps - 1) * this.#decoding.length;
    const before = this.#decoding.length;
    const parts = this.#decoding.concat(this.#reading.filter(({ share }) => share > 0));
    for (let i = 0; i < parts.length; i++) {
      const sequence = parts[i]!;
      if (sequence.state !== 'running') continue;
      if (i < before) {
        this.#advance(sequence);
        continue;
      }
      sequence.prompted += sequence.share;
      this.#promptTokensTotal += sequence.share;
      sequence.share = 0;
      if (sequence.prompted === sequence.job.promptTokens) {
        remove(this.#reading, sequence);
        this.#decoding.push(sequence);
        sequence.base = this.#rounds - 1;
        this.#advance(sequence);
      }
    }
  }

  /** The step that ends a prompt brings the first token; each later one brings one more. */
  #advance(sequence: Sequence): void {
    const { job, sink, base, cutAt } = sequence;
    const generated = this.#rounds - base;
    if (generated > cutAt) {
      this.#fail(sequence, 'reset');
      return;
    }
    if (job.outputTokens > 0) {
      this.#outputTokensTotal++;
      if (!sink.firstOnly || generated === 1) sink.onToken(generated - 1);
    }
    if (sequence.state === 'running' && generated >= job.outputTokens) {
      this.#leave(sequence);
      sink.onEnd();
    }
  }

  #fail(sequence: Sequence, fault: 'error' | 'reset'): void {
    this.#leave(sequence);
    sequence.sink.onFault(fault);
  }

  #leave(sequence: Sequence): void {
    const { job, state } = sequence;
    if (state === 'over') return;
    this.#interrupt(); // one that waits may hold back those behind it
    if (state === 'running') {
      this.#kvTokens -= job.promptTokens + job.outputTokens;
      remove(sequence.prompted < job.promptTokens ? this.#reading : this.#decoding, sequence);
    } else {
      this.#waiting.delete(sequence);
      if (this.#errors.size > 0) {
        this.#timers.clear(this.#errors.get(sequence));
        this.#errors.delete(sequence);
      }
    }
    sequence.state = 'over';
  }
}

function remove(sequences: Sequence[], sequence: Sequence): void {
  const at = sequences.indexOf(sequence);
  if (at >= 0) sequences.splice(at, 1);
}
