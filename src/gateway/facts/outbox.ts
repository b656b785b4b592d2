import type { Fact } from '../../events/contracts.ts';
import { eventMaker } from '../../events/event-maker.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { GatewayToControl } from '../../links/messages.ts';
import type { FactSink } from '../contracts.ts';
import { type EndedRequest, Groups } from './groups.ts';

type Batch = Extract<GatewayToControl, { type: 'facts' }>;

/** Facts of one batch. */
const BATCH_MAX = 200;
/**
 * Facts that may be unacknowledged at once, so many that every turn's leave with it while control is only slow; what comes
 * beyond waits and leaves in fuller batches.
 */
const FACTS_SENT_MAX = 2000;
/** Facts beyond `factsMax` that are still kept: examples of groups, and events. */
const BEYOND_MAX = 1000;
/** How long counts are gathered before they leave. */
const GROUP_MS = 1000;

export interface OutboxLimits {
  /** Facts that wait; beyond it full records become counts. */
  factsMax: number;
  /** Full records in one second; beyond it one example and a count for each kind. */
  recordsPerSecondMax: number;
}

/**
 * What this worker has to tell control. Facts leave once a turn of the loop in numbered batches; a batch is kept, and sent
 * again on each new connection, until control says that it is stored. Its number and this process's boot let control store
 * it once however often it comes.
 */
export class Outbox implements FactSink {
  limits: OutboxLimits = { factsMax: 100_000, recordsPerSecondMax: 100 };
  /** Called when the last fact that waited has been stored. */
  onEmpty: (() => void) | undefined;

  readonly #boot: string;
  readonly #send: (batch: Batch) => boolean;
  readonly #soon: (run: () => void) => void;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #event: ReturnType<typeof eventMaker>;

  #queue: Fact[] = [];
  /** Sent and not yet stored, oldest first. */
  readonly #sent = new Map<number, Batch>();
  #sentFacts = 0;
  #sequence = 0;
  #flushing = false;

  readonly #groups = new Groups();
  #groupTimer: TimerHandle;
  #second = 0;
  #records = 0;
  #eventsDropped = 0;

  constructor(options: {
    boot: string;
    /** Puts a batch on the way; false where there is no connection. */
    send: (batch: Batch) => boolean;
    /** Runs something at the end of this turn of the loop. */
    soon: (run: () => void) => void;
    clock: Clock;
    timers: Timers;
    random: Random;
  }) {
    this.#boot = options.boot;
    this.#send = options.send;
    this.#soon = options.soon;
    this.#clock = options.clock;
    this.#timers = options.timers;
    this.#event = eventMaker(options.clock, options.random);
  }

  /** Facts and groups of facts that control has not yet stored. */
  get waiting(): number {
    return this.#facts + this.#groups.size;
  }

  wantsRecord(ended: EndedRequest): boolean {
    if (this.#mayKeep()) return true;
    this.#armGroups();
    return this.#groups.add(ended, this.#facts < this.limits.factsMax + BEYOND_MAX);
  }

  /** Takes every record, for `wantsRecord` has judged it; an event only up to the bound. */
  push(fact: Fact): void {
    if (fact.kind === 'event' && this.#facts >= this.limits.factsMax + BEYOND_MAX) this.#eventsDropped++;
    else this.#enqueue(fact);
  }

  /** A connection stands: everything that is not known to be stored goes out again, in its order. */
  up(): void {
    for (const batch of this.#sent.values()) if (!this.#send(batch)) return;
    this.#flushSoon();
  }

  stored(sequence: number): void {
    const batch = this.#sent.get(sequence);
    if (!batch) return;
    this.#sent.delete(sequence);
    this.#sentFacts -= batch.facts.length;
    if (this.#queue.length > 0) this.#flushSoon();
    if (this.#eventsDropped > 0) this.#tellDropped();
    if (this.waiting === 0) this.onEmpty?.();
  }

  /** Sends the counts gathered so far without waiting for the end of their second. */
  flushGroups(): void {
    this.#timers.clear(this.#groupTimer);
    this.#groupTimer = undefined;
    for (const group of this.#groups.take()) this.#enqueue(group);
    if (this.waiting === 0) this.onEmpty?.();
  }

  get #facts(): number {
    return this.#queue.length + this.#sentFacts;
  }

  /** Whether one more record is kept in full: there is room for it, and the rate allows it. */
  #mayKeep(): boolean {
    if (this.#facts >= this.limits.factsMax) return false;
    const second = Math.floor(this.#clock.wall() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#records = 0;
    }
    return ++this.#records <= this.limits.recordsPerSecondMax;
  }

  #enqueue(fact: Fact): void {
    this.#queue.push(fact);
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#soon(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#queue.length === 0 || this.#sentFacts >= FACTS_SENT_MAX) return;
    const facts = this.#queue.slice(0, BATCH_MAX);
    const batch: Batch = { type: 'facts', boot: this.#boot, sequence: this.#sequence + 1, facts };
    if (!this.#send(batch)) return;
    this.#sequence++;
    this.#queue = this.#queue.slice(facts.length);
    this.#sent.set(batch.sequence, batch);
    this.#sentFacts += facts.length;
    // One batch a turn, so that a long queue does not hold up requests.
    if (this.#queue.length > 0) this.#flushSoon();
  }

  #armGroups(): void {
    this.#groupTimer ??= this.#timers.set(GROUP_MS, () => {
      this.#groupTimer = undefined;
      // Without room the counts go on growing where they are: that takes no memory.
      if (this.#facts < this.limits.factsMax) this.flushGroups();
      else this.#armGroups();
    });
  }

  #tellDropped(): void {
    const count = this.#eventsDropped;
    this.#eventsDropped = 0;
    const data = { count, reason: 'more facts waited than gateway.factsMax allows' };
    this.#enqueue({
      kind: 'event',
      event: this.#event({ type: 'events-dropped', subject: 'gateway', data }),
    });
  }
}
