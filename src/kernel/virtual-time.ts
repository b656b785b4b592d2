import type { Clock } from './clock.ts';
import type { TimerHandle, Timers } from './timers.ts';

interface Due {
  at: number;
  order: number;
  run: () => void;
  cleared: boolean;
}

/**
 * A clock and timers turned by hand. Timers due at one moment run in the order in which they were set.
 * `settle` is awaited between timers so that promise reactions run as they would between turns of a real loop.
 */
export class VirtualTime implements Clock, Timers {
  #now = 0;
  #order = 0;
  #due: Due[] = [];
  readonly #epoch: number;

  constructor(epoch = Date.UTC(2026, 0, 1)) {
    this.#epoch = epoch;
  }

  wall(): number {
    return this.#epoch + this.#now;
  }

  mono(): number {
    return this.#now;
  }

  set(delayMs: number, run: () => void): TimerHandle {
    const due: Due = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run, cleared: false };
    this.#due.push(due);
    return due;
  }

  clear(handle: TimerHandle): void {
    const due = handle as Due | undefined;
    if (due) due.cleared = true;
  }

  /** Timers set and neither run nor cleared. */
  get pending(): number {
    return this.#due.filter((due) => !due.cleared).length;
  }

  /** Runs everything due within the next `ms` milliseconds, in order, and leaves the clock at the end of them. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      this.#due = this.#due.filter((due) => !due.cleared);
      let next: Due | undefined;
      for (const due of this.#due) {
        if (due.at <= end && (!next || due.at < next.at || (due.at === next.at && due.order < next.order)))
          next = due;
      }
      if (!next) break;
      this.#now = Math.max(this.#now, next.at);
      next.cleared = true;
      next.run();
      await settle();
    }
    this.#now = end;
  }
}

/** Lets every promise reaction that is ready run. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
