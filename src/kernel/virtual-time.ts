import type { Clock } from './clock.ts';
import type { TimerHandle, Timers } from './timers.ts';

interface Due {
  at: number;
  order: number;
  run: () => void;
  /** Its place in the heap; -1 once it has run or was cleared. */
  place: number;
}

/**
 * A clock and timers turned by hand. Timers due at one moment run in the order in which they were set. `advance` lets
 * promise reactions run between timers, as they would between turns of a real loop; `run` does not wait for anything,
 * for code that has no promises.
 */
export class VirtualTime implements Clock, Timers {
  #now = 0;
  #order = 0;
  /** A binary heap, the next one first. What is cleared leaves at once: most timers of a request are. */
  readonly #heap: Due[] = [];
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
    const due: Due = { at, order: this.#order++, run, place: this.#heap.length };
    this.#heap.push(due);
    this.#rise(due);
    return due;
  }

  clear(handle: TimerHandle): void {
    const due = handle as Due | undefined;
    if (due && due.place >= 0) this.#remove(due);
  }

  /** Timers set and neither run nor cleared. */
  get pending(): number {
    return this.#heap.length;
  }

  /** When the next timer is due, or undefined where there is none. */
  get nextAt(): number | undefined {
    return this.#heap[0]?.at;
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
    const next = this.#heap[0];
    if (!next || next.at > end) return false;
    this.#remove(next);
    this.#now = Math.max(this.#now, next.at);
    next.run();
    return true;
  }

  #remove(due: Due): void {
    const last = this.#heap.pop()!;
    const { place } = due;
    due.place = -1;
    if (last === due) return;
    last.place = place;
    this.#heap[place] = last;
    this.#rise(last);
    if (last.place === place) this.#sink(last);
  }

  #rise(due: Due): void {
    const heap = this.#heap;
    let { place } = due;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const other = heap[above]!;
      if (!before(due, other)) break;
      heap[place] = other;
      other.place = place;
      place = above;
    }
    heap[place] = due;
    due.place = place;
  }

  #sink(due: Due): void {
    const heap = this.#heap;
    let { place } = due;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && before(heap[below + 1]!, heap[below]!)) below++;
      const other = heap[below]!;
      if (!before(other, due)) break;
      heap[place] = other;
      other.place = place;
      place = below;
    }
    heap[place] = due;
    due.place = place;
  }
}

function before(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Lets every promise reaction that is ready run. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
