import type { Clock } from './clock.ts';
import { Heap, type Heaped } from './heap.ts';
import type { TimerHandle, Timers } from './timers.ts';

/** Out of the heap once it has run or was cleared. */
interface Due extends Heaped {
  at: number;
  order: number;
  run: () => void;
}

/**
 * A clock and timers turned by hand. Timers due at one moment run in the order in which they were set. `advance` lets
 * promise reactions run between timers, as they would between turns of a real loop; `run` does not wait for anything,
 * for code that has no promises.
 */
export class VirtualTime implements Clock, Timers {
  #now = 0;
  #order = 0;
  /** The next one first. What is cleared leaves at once: most timers of a request are. */
  readonly #heap = new Heap<Due>(before);
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
    const at = this.#now + Math.max(0, delayMs);
    const due: Due = { at, order: this.#order++, run, slot: -1 };
    this.#heap.add(due);
    return due;
  }

  clear(handle: TimerHandle): void {
    const due = handle as Due | undefined;
    if (due && due.slot >= 0) this.#heap.remove(due);
  }

  /** Timers set and neither run nor cleared. */
  get pending(): number {
    return this.#heap.items.length;
  }

  /** When the next timer is due, or undefined where there is none. */
  get nextAt(): number | undefined {
    return this.#heap.first?.at;
  }

  /** Runs everything due within the next `ms` milliseconds, in order, and leaves the clock at the end of them. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    while (this.#step(end)) await settle();
    this.#now = end;
  }

  /** The same at once, without letting promises settle. */
  run(ms: number): void {
    const end = this.#now + ms;
    while (this.#step(end));
    this.#now = end;
  }

  /** Runs the next timer if it is due by `end`. */
  #step(end: number): boolean {
    const next = this.#heap.first;
    if (!next || next.at > end) return false;
    this.#heap.remove(next);
    this.#now = Math.max(this.#now, next.at);
    next.run();
    return true;
  }
}

function before(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Lets every promise reaction that is ready run. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
