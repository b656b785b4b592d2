import type { Clock } from '../kernel/clock.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { Keep } from '../store/contracts.ts';

/** `store.keep`. */
export interface RetentionLimits {
  ageMs: number;
  sizeBytes: number;
}

/** What old things are removed from: one small step at a time, of `limit` things at most. */
export interface Trimmed {
  trim(keep: Keep, limit: number): Promise<{ more: boolean }>;
}

/** Events of one step: a few milliseconds of the store's time. */
const STEP_EVENTS = 200;
/** Between two steps, so that batches and questions come in between. */
const STEP_PAUSE_MS = 20;
const LOOK_EVERY_MS = 10_000;

/** Removes what is old in small steps. Nothing is removed before `keep` is first called. */
export class Retention {
  readonly #kept: Trimmed;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #onFailure: (error: unknown) => void;
  #limits: RetentionLimits | undefined;
  #timer: TimerHandle;
  #stopped = false;

  constructor(kept: Trimmed, clock: Clock, timers: Timers, onFailure: (error: unknown) => void) {
    this.#kept = kept;
    this.#clock = clock;
    this.#timers = timers;
    this.#onFailure = onFailure;
  }

  keep(limits: RetentionLimits): void {
    this.#limits = limits;
    this.#next(STEP_PAUSE_MS);
  }

  stop(): void {
    this.#stopped = true;
    this.#timers.clear(this.#timer);
  }

  #next(inMs: number): void {
    this.#timers.clear(this.#timer);
    if (!this.#stopped) this.#timer = this.#timers.set(inMs, () => void this.#step());
  }

  async #step(): Promise<void> {
    const { ageMs, sizeBytes } = this.#limits!;
    try {
      const keep = { since: this.#clock.wall() - ageMs, bytesMax: sizeBytes };
      const { more } = await this.#kept.trim(keep, STEP_EVENTS);
      this.#next(more ? STEP_PAUSE_MS : LOOK_EVERY_MS);
    } catch (error) {
      this.#onFailure(error);
      this.#next(LOOK_EVERY_MS);
    }
  }
}
