import { LRUCache } from 'lru-cache';
import type { Clock } from '../../kernel/clock.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import { sessionHash } from '../../policies/canary-arm/index.ts';
import type { FactSink } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import type { PairSink } from '../shadow/contracts.ts';
import type { World } from '../state/world.ts';
import { EvidenceBatch } from './batch.ts';
import type { RouteRelease } from './route-release.ts';

/**
 * How long evidence is gathered before it is told; and how long where a request has failed, of whichever arm: the moments at
 * which evidence is read must not hang on arms, or chance is read as harm (decision 24).
 */
const TELL_MS = 5_000;
const TELL_FAILED_MS = 1_000;
/** While more facts wait than these, as control is away, evidence is gathered on: it takes no more room for that. */
const FACTS_WAITING_MAX = 1_000;
/** Sessions of each release that are remembered as seen. One that is forgotten is told as a first one again, which does no harm. */
const SESSIONS_SEEN_MAX = 50_000;

export interface EvidenceDeps {
  clock: Clock;
  timers: Timers;
  facts: FactSink;
  world: World;
  worker: number;
}

interface Open {
  batch: EvidenceBatch;
  dueAt: number;
  timer: TimerHandle;
}

/**
 * Gathers what this worker sees of routes under release, and tells it: after a while, soon after something has
 * failed, when the snapshot changes, and when the worker leaves. Requests are counted to the snapshot that they were divided
 * on, however late they end. Nothing is kept, and no timer runs, while nothing was seen.
 */
export class EvidenceGatherer implements PairSink {
  readonly #deps: EvidenceDeps;
  readonly #open = new Map<RouteRelease, Open>();
  readonly #seen = new Map<string, LRUCache<number, true>>();

  constructor(deps: EvidenceDeps) {
    this.#deps = deps;
  }

  /** To be called when a request that has an arm is over. */
  gather(x: Exchange, now: number): void {
    const { release } = x.armed!;
    const open = this.#batchOf(release);
    const failed = open.batch.add(x, now, () => this.#isFirst(x));
    if (failed) this.#dueBy(release, open, now + TELL_FAILED_MS);
  }

  pair(release: string, x: Exchange, compared: { difference: number; by: string }): void {
    const of = this.#find(release, x);
    if (!of) return;
    const session = x.armed?.session ?? sessionHash(release, x.id);
    this.#batchOf(of).batch.pair({ session, request: x.id, ...compared });
  }

  skipped(release: string, x: Exchange, cause: string): void {
    const of = this.#find(release, x);
    if (of) this.#batchOf(of).batch.skipped(cause);
  }

  /** To be called when a snapshot has taken the place of another. */
  swapped(): void {
    this.flush();
    const live = new Set<string>();
    for (const { release } of this.#deps.world.routes.values()) if (release) live.add(release.arms.id);
    for (const id of this.#seen.keys()) if (!live.has(id)) this.#seen.delete(id);
  }

  /** Tells all that was gathered. */
  flush(): void {
    for (const [release, open] of [...this.#open]) this.#tell(release, open);
  }

  #batchOf(release: RouteRelease): Open {
    let open = this.#open.get(release);
    if (!open) {
      const { clock } = this.#deps;
      const batch = new EvidenceBatch(release, clock.wall());
      open = { batch, dueAt: Number.POSITIVE_INFINITY, timer: undefined };
      this.#open.set(release, open);
      this.#dueBy(release, open, clock.mono() + TELL_MS);
    }
    return open;
  }

  #dueBy(release: RouteRelease, open: Open, at: number): void {
    if (at >= open.dueAt) return;
    const { clock, timers } = this.#deps;
    open.dueAt = at;
    timers.clear(open.timer);
    open.timer = timers.set(Math.max(1, at - clock.mono()), () => this.#due(release, open));
  }

  #due(release: RouteRelease, open: Open): void {
    const { clock, facts } = this.#deps;
    if (facts.waiting < FACTS_WAITING_MAX) this.#tell(release, open);
    else {
      open.dueAt = Number.POSITIVE_INFINITY;
      this.#dueBy(release, open, clock.mono() + TELL_MS);
    }
  }

  #tell(release: RouteRelease, open: Open): void {
    const { clock, timers, facts, worker } = this.#deps;
    timers.clear(open.timer);
    this.#open.delete(release);
    facts.push({ kind: 'evidence', evidence: open.batch.read(worker, clock.wall()) });
  }

  #isFirst(x: Exchange): boolean {
    const { release, session, alone } = x.armed!;
    if (alone) return true;
    const { id } = release.arms;
    let seen = this.#seen.get(id);
    if (!seen) {
      seen = new LRUCache({ max: SESSIONS_SEEN_MAX });
      this.#seen.set(id, seen);
    }
    if (seen.get(session)) return false;
    seen.set(session, true);
    return true;
  }

  /** The release as it was when the request was divided; as it is now for one that was not. */
  #find(release: string, x: Exchange): RouteRelease | undefined {
    const of = x.armed?.release ?? x.route?.release;
    if (of?.arms.id === release) return of;
    const present = this.#deps.world.routes.get(x.route?.name ?? '')?.release;
    return present?.arms.id === release ? present : undefined;
  }
}
