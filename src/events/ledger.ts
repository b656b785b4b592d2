import type { Clock } from '../kernel/clock.ts';
import { idMaker } from '../kernel/ids.ts';
import type { Random } from '../kernel/random.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import { type Batch, type Store, type StoredEvent, StoreError } from '../store/contracts.ts';
import type { Fact, LedgerEvent } from './contracts.ts';
import { type EventDraft, eventMaker } from './event-maker.ts';
import { eventOf } from './facts.ts';
import { Followers, type FollowQuery } from './follow.ts';
import { Gathering } from './gathering.ts';
import { Retention, type RetentionLimits } from './retention.ts';

/** Events of control's own that wait while the store cannot be written; what comes beyond is lost, and counted. */
const WAITING_MAX = 10_000;
/** Events of one transaction. */
const WRITTEN_MAX = 500;
const RETRY_MS_FIRST = 500;
const RETRY_MS_MAX = 30_000;

export interface LedgerOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  random: Random;
  /** Where trouble is told: once when it begins, with each attempt that fails again, and when it is over. */
  log: { warn(figures: object, words: string): void; error(figures: object, words: string): void };
}

/**
 * Control's ledger: takes events and workers' batches, retries what the store cannot take, drops the old, and lets
 * others follow. Nothing here throws into whoever tells an event: trouble is told in the log and by `lost`, `waiting`
 * and `trouble`.
 */
export class LedgerService {
  readonly store: Store;
  /** Gives a draft its id and time without storing it: for what is stored together with a key, an overlay or a snapshot. */
  readonly event: (draft: EventDraft) => LedgerEvent;
  readonly #options: LedgerOptions;
  readonly #makeId: (wallMs: number) => string;
  readonly #followers: Followers;
  readonly #retention: Retention;
  readonly #gathering: Gathering;

  #waiting: LedgerEvent[] = [];
  #writing: Promise<void> | undefined;
  #lost = 0;
  /** Lost and not yet told in the ledger itself. */
  #untold = 0;

  #trouble: StoreError | undefined;
  #failures = 0;
  #retryAt = 0;
  #retryTimer: TimerHandle;
  #closed = false;

  constructor(options: LedgerOptions) {
    this.store = options.store;
    this.#options = options;
    this.event = eventMaker(options.clock, options.random);
    this.#makeId = idMaker('ev', options.random);
    this.#followers = new Followers(options.store.ledger, options.timers);
    this.#retention = new Retention(options.store.ledger, options.clock, options.timers, (error) =>
      options.log.warn({ err: error }, 'retention failed; it is tried again'),
    );
    this.#gathering = new Gathering((batches) => this.#storeBatches(batches), options.timers);
    options.store.onStored = () => this.#followers.wake();
  }

  /** Events that could not be stored since this process began: `armature_ledger_lost_total`. */
  get lost(): number {
    return this.#lost;
  }

  /** Events of this process that wait to be stored. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** What the store said when it last could not be written; undefined while all is well. */
  get trouble(): StoreError | undefined {
    return this.#trouble;
  }

  /** Stores an event as soon as it can be; gives it at once, so that its id can be a cause of others. */
  append(draft: EventDraft): LedgerEvent {
    const event = this.event(draft);
    if (this.#closed || this.#waiting.length >= WAITING_MAX) {
      this.#lose(1);
    } else {
      this.#waiting.push(event);
      this.#write();
    }
    return event;
  }

  /**
   * Stores a worker's batch once, however often it comes, together with those that come within a moment. Rejects with a
   * StoreError while the store cannot be written: then it must not be acknowledged, and the worker keeps it. Without
   * trying the store before its next retry is due.
   */
  async storeFacts(boot: string, sequence: number, facts: readonly Fact[]): Promise<void> {
    if (this.#trouble && this.#options.clock.mono() < this.#retryAt) throw this.#trouble;
    await this.#gathering.add({ boot, sequence, events: this.#eventsOf(facts) });
  }

  /** Resolves once what workers have sent is stored, as far as it has come here and can be. */
  async received(): Promise<void> {
    await this.#gathering.flushed();
  }

  /**
   * An event by its id. One that is not there may still be on its way from its worker: it is waited for, up to `withinMs`
   * milliseconds; what is no id of Armature's is not.
   */
  async find(id: string, withinMs: number): Promise<StoredEvent | undefined> {
    await this.received();
    return this.#followers.find(id, withinMs);
  }

  /** Events as they are stored; see Followers. */
  follow(query: FollowQuery): AsyncIterable<LedgerEvent> {
    return this.#followers.follow(query);
  }

  /** The same, with their places in the ledger: for whoever goes on where it was after a restart. */
  followStored(query: FollowQuery): AsyncIterable<StoredEvent> {
    return this.#followers.followStored(query);
  }

  /** Whether one more may follow. */
  get followable(): boolean {
    return this.#followers.free;
  }

  /** Sets what is kept, from now on. */
  keep(limits: RetentionLimits): void {
    this.#retention.keep(limits);
  }

  /** Resolves once what was appended is stored, or is known not to be for now. */
  async flushed(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  /** Stores what waits, if it can be, and ends; gives the number of events left over. The store stays open. */
  async close(): Promise<number> {
    await this.received();
    this.#closed = true;
    this.#options.timers.clear(this.#retryTimer);
    this.#retention.stop();
    this.#followers.close();
    await this.flushed();
    if (this.#waiting.length > 0) {
      this.#write();
      await this.flushed();
    }
    return this.#waiting.length;
  }

  #eventsOf(facts: readonly Fact[]): LedgerEvent[] {
    try {
      return facts.map((fact) => eventOf(fact, this.#makeId));
    } catch (error) {
      this.#giveUp(facts.length, error);
      return [];
    }
  }

  async #storeBatches(batches: readonly Batch[]): Promise<void> {
    try {
      await this.store.ledger.storeBatches(batches);
    } catch (error) {
      if (isTrouble(error)) throw this.#failed(error);
      if (batches.length > 1) {
        // One of them cannot be stored, and the others are not to go with it.
        for (const batch of batches) await this.#storeBatches([batch]);
        return;
      }
      const { boot, sequence, events } = batches[0]!;
      // Sent again it would be no better, and hold up all that comes after it.
      this.#giveUp(events.length, error);
      await this.store.ledger.storeBatches([{ boot, sequence, events: [] }]);
    }
    this.#recovered();
  }

  #write(): void {
    if (this.#writing || (this.#trouble && !this.#closed && this.#options.clock.mono() < this.#retryAt))
      return;
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  /** What is told in one turn of the loop is stored in one transaction. */
  async #writeAll(): Promise<void> {
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const events = this.#waiting.slice(0, WRITTEN_MAX);
      try {
        await this.store.ledger.append(events);
      } catch (error) {
        if (isTrouble(error)) {
          this.#failed(error);
          return;
        }
        this.#giveUp(events.length, error);
      }
      this.#waiting.splice(0, events.length);
      this.#recovered();
    }
  }

  #lose(count: number): void {
    this.#lost += count;
    this.#untold += count;
  }

  /** It is not the store that is in trouble: these cannot be stored at all, which is a fault in Armature. */
  #giveUp(count: number, error: unknown): void {
    this.#lose(count);
    this.#options.log.error({ err: error, count }, 'events that cannot be stored are lost');
  }

  #failed(trouble: StoreError): StoreError {
    const backOffMs = Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 2 ** this.#failures++);
    this.#trouble = trouble;
    this.#retryAt = this.#options.clock.mono() + backOffMs;
    this.#options.log.error(
      { trouble: trouble.trouble, waiting: this.waiting, lost: this.#lost, retryInMs: backOffMs },
      `the ledger cannot be written: ${trouble.message}`,
    );
    this.#options.timers.clear(this.#retryTimer);
    if (!this.#closed) this.#retryTimer = this.#options.timers.set(backOffMs, () => this.#write());
    return trouble;
  }

  #recovered(): void {
    if (this.#trouble) {
      this.#trouble = undefined;
      this.#failures = 0;
      this.#options.log.warn({ lost: this.#lost }, 'the ledger is written again');
    }
    const count = this.#untold;
    this.#untold = 0;
    if (count > 0) {
      this.append({ type: 'events-lost', subject: 'ledger', data: { count } });
    }
    this.#write();
  }
}

/** Whether the store itself is in trouble, rather than what it was to store. */
function isTrouble(error: unknown): error is StoreError {
  return error instanceof StoreError && error.trouble !== 'conflict';
}
