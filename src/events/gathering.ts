import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { Batch } from '../store/contracts.ts';

/** How long batches are gathered: a worker that ends a request every turn sends hundreds in a second. */
const GATHER_MS = 25;
/** With so many events together they are stored at once, so that one transaction stays short; a batch more may join them. */
const EVENTS_MAX = 500;

/** Gathers the batches that come within a moment, so that one transaction stores them all. */
export class Gathering {
  readonly #store: (batches: Batch[]) => Promise<void>;
  readonly #timers: Timers;
  #batches: Batch[] = [];
  #events = 0;
  #timer: TimerHandle;
  #stored: PromiseWithResolvers<void> | undefined;

  constructor(store: (batches: Batch[]) => Promise<void>, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  /** Resolves when the batch is stored with all that came beside it; rejects as `store` does. */
  add(batch: Batch): Promise<void> {
    this.#stored ??= Promise.withResolvers();
    const { promise } = this.#stored;
    this.#batches.push(batch);
    this.#events += batch.events.length;
    if (this.#events >= EVENTS_MAX) this.#flush();
    else this.#timer ??= this.#timers.set(GATHER_MS, () => this.#flush());
    return promise;
  }

  /** Stores without waiting what was gathered. Resolves when it is stored, or is known not to be: whoever sent it is told. */
  async flushed(): Promise<void> {
    const stored = this.#stored;
    this.#flush();
    await stored?.promise.catch(() => undefined);
  }

  #flush(): void {
    this.#timers.clear(this.#timer);
    this.#timer = undefined;
    const stored = this.#stored;
    if (!stored) return;
    const batches = this.#batches;
    this.#stored = undefined;
    this.#batches = [];
    this.#events = 0;
    this.#store(batches).then(stored.resolve, stored.reject);
  }
}
