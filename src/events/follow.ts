import { idTime } from '../kernel/ids.ts';
import type { Timers } from '../kernel/timers.ts';
import { EVENTS_PAGE_MAX, type EventQuery, type Ledger, type StoredEvent } from '../store/contracts.ts';
import type { LedgerEvent } from './contracts.ts';

/** Followers at one time. */
export const FOLLOWERS_MAX = 64;
/** The ledger is read at most once in so many milliseconds for each follower. */
const READ_EVERY_MS = 20;

export interface FollowQuery {
  /** Events stored after this position. */
  after: number;
  type?: string;
  subject?: string;
  /** Ends it. */
  signal: AbortSignal;
}

/**
 * Those who follow the ledger. Each is a place in the ledger that moves forward as its reader takes events, so a slow
 * reader holds one page and nothing else, and misses nothing that retention leaves.
 */
export class Followers {
  readonly #ledger: Ledger;
  readonly #timers: Timers;
  #count = 0;
  #closed = false;
  #sleepers = new Set<() => void>();

  constructor(ledger: Ledger, timers: Timers) {
    this.#ledger = ledger;
    this.#timers = timers;
  }

  get free(): boolean {
    return this.#count < FOLLOWERS_MAX && !this.#closed;
  }

  /** Something was stored. */
  wake(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = new Set();
    for (const wakeUp of sleepers) wakeUp();
  }

  close(): void {
    this.#closed = true;
    this.wake();
  }

  /** Events of the ledger as they are stored, until the signal or `close`. */
  async *follow(query: FollowQuery): AsyncGenerator<LedgerEvent> {
    for await (const { event } of this.followStored(query)) yield event;
  }

  /** The same, with their places in the ledger. */
  async *followStored({ after, type, subject, signal }: FollowQuery): AsyncGenerator<StoredEvent> {
    this.#count++;
    try {
      const query: EventQuery = {
        order: 'asc',
        limit: EVENTS_PAGE_MAX,
        after,
        ...(type === undefined ? {} : { type }),
        ...(subject === undefined ? {} : { subject }),
      };
      while (!signal.aborted && !this.#closed) {
        // Before the ledger is read, so that what is stored meanwhile is not slept through.
        const stored = this.#stored(signal);
        const page = await this.#ledger.events(query);
        for (const stored of page) {
          query.after = stored.position;
          yield stored;
          if (signal.aborted) return;
        }
        if (page.length === EVENTS_PAGE_MAX) continue;
        await stored;
        if (!this.#closed) await this.#pause(READ_EVERY_MS, signal);
      }
    } finally {
      this.#count--;
    }
  }

  /** An event by its id; one that is not there yet is waited for, up to `withinMs` milliseconds. */
  async find(id: string, withinMs: number): Promise<StoredEvent | undefined> {
    const found = await this.#ledger.event(id);
    if (found || withinMs <= 0 || idTime(id) === undefined) return found;
    const late = new AbortController();
    const limit = this.#timers.set(withinMs, () => late.abort());
    try {
      for (;;) {
        const stored = this.#stored(late.signal);
        const event = await this.#ledger.event(id);
        if (event || late.signal.aborted || this.#closed) return event;
        await stored;
      }
    } finally {
      this.#timers.clear(limit);
    }
  }

  #stored(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted || this.#closed) {
        resolve();
        return;
      }
      const wakeUp = () => {
        signal.removeEventListener('abort', aborted);
        resolve();
      };
      const aborted = () => {
        this.#sleepers.delete(wakeUp);
        resolve();
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.#sleepers.add(wakeUp);
    });
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#timers.clear(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = this.#timers.set(ms, end);
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted) end();
    });
  }
}
