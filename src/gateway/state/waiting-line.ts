import { Chain, type Link } from '../../kernel/chain.ts';
import { priorities } from '../../kernel/priorities.ts';
import { type Ahead, DrainRate, ServiceTimes } from '../../policies/deadline-fit/index.ts';
import type { Yielding } from '../../policies/displacement/index.ts';
import { FairQueue, type Place } from '../../policies/fair-queue/index.ts';
import { floorsOf, PriorityFloors } from '../../policies/priority-floors/index.ts';
import type { Endpoint } from './endpoint.ts';
import { type Claim, KeptPlaces } from './room.ts';

/** How a waiter took its turn: it has its place, it waits for it no more, or there is none for it yet. */
export type Turn = 'taken' | 'left' | 'none';

/** A request that waits for a place at an endpoint of one backend. */
export interface Waiter extends Claim {
  /** Tokens that it counts for. */
  readonly work: number;
  /** The one endpoint that can serve it, where its state lies there. */
  readonly only: Endpoint | undefined;
  /** Called when a place may be had. */
  onTurn(): Turn;
  /** No endpoint of the backend can be used any more: another way must be found. */
  onHopeless(): void;
}

/** One that waits in a route's queue, and may have to give its place there to another. */
export interface Yielder {
  readonly id: string;
  /** Leaves the queue for another one; what is given back brings it on its own way, once that one is in. */
  yield(rule: Yielding<Yielder>['rule'], to: Yielder, max: number): () => void;
}

/** Where a waiter stands; it is given up by `leave` or `serve`. */
export interface Standing {
  readonly waiter: Waiter;
  place: Place<Standing> | undefined;
  /** Its turn has come, and there was no room for it then. */
  parked: Link<Standing> | undefined;
  parkedAt: number;
  /** Others who got a place since then. */
  passedBy: number;
}

/** Of those too large for the room there was, so many are stepped over at once; the next one holds up the line. */
const STEPPED_OVER_MAX = 4;
/** Stepped over so often, or for so long, one holds up those of its own priority and below; four times that, everybody. */
const PASSED_BY_MAX = 16;
const PARKED_MS_MAX = 1_000;
const HOLDS_EVERYBODY = 4;

const RANKS = priorities.length;
/** Whom no place is kept from. */
const ANYBODY: Claim = { rank: 0, tenant: '', share: 1 };

/**
 * Who waits for one backend, and whose turn it is: by priority with floors, within a priority fair between tenants by
 * tokens. Who has had its turn when there was no room for it is next as soon as there is. Its length is bounded by the
 * routes' `queue.max`; no operation looks at all who wait.
 */
export class WaitingLine {
  readonly drain = new DrainRate(RANKS);
  readonly service = new ServiceTimes();
  readonly kept = new KeptPlaces();
  floors: readonly number[] = floorsOf(new Array(RANKS).fill(0));
  readonly #queues = priorities.map(() => new FairQueue<Standing>());
  readonly #order = new PriorityFloors();
  /** Those whose one endpoint was full at their turn, and those who were too large for what was free. */
  readonly #pinned = new Map<Endpoint, Chain<Standing>>();
  readonly #large = new Chain<Standing>();
  /** Who waits, and their work, by priority; parked or not. */
  readonly #counts = new Array<number>(RANKS).fill(0);
  readonly #work = new Array<number>(RANKS).fill(0);
  readonly #heads = new Array<number>(RANKS).fill(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  waitingAt(rank: number): number {
    return this.#counts[rank]!;
  }

  /** Tokens that wait. */
  get work(): number {
    let sum = 0;
    for (const work of this.#work) sum += work;
    return sum;
  }

  join(waiter: Waiter, now: number): Standing {
    const standing: Standing = { waiter, place: undefined, parked: undefined, parkedAt: 0, passedBy: 0 };
    const { rank, tenant, share, work } = waiter;
    standing.place = this.#queues[rank]!.add(standing, tenant, share, work);
    this.#counts[rank]!++;
    this.#work[rank]! += work;
    if (this.#length++ === 0) this.drain.contested(now, true);
    return standing;
  }

  /** It waits no more. */
  leave(standing: Standing, now: number): void {
    const { place, parked, waiter } = standing;
    if (place) this.#queues[waiter.rank]!.remove(place);
    else if (parked) this.#unpark(parked);
    else return;
    this.#gone(standing, now);
  }

  /** It has its place: its tenant and its priority pay for it. */
  serve(standing: Standing, now: number): void {
    const { place, parked, waiter } = standing;
    if (!place && !parked) return;
    this.#readHeads();
    this.#heads[waiter.rank] = waiter.work;
    this.#order.observe({ heads: this.#heads, floors: this.floors, choice: waiter.rank });
    if (place) {
      this.#queues[waiter.rank]!.serve(place);
      const first = this.#large.first?.item;
      if (first) first.passedBy++;
    } else this.#unpark(parked!);
    this.#gone(standing, now);
  }

  /** Gives places to those who wait, in their order, for as long as there is room for them. */
  offer(isRoomFor: (claim: Claim) => boolean, now: number): void {
    if (this.#length > 0) this.drain.contested(now, true); // it may have been paused
    if (this.#pinned.size > 0) this.#offerPinned(now);
    while (this.#length > 0 && isRoomFor(ANYBODY)) {
      const keeps = this.kept.inForce(now);
      const large = this.#large.first?.item;
      const held = large === undefined ? 0 : this.#heldUp(large, now);
      if (
        large &&
        (!keeps || isRoomFor(large.waiter)) &&
        this.#mayGo(large, held) &&
        large.waiter.onTurn() !== 'none'
      )
        continue;
      // From here on `large`, where there is one, does not fit, or others go before it.
      if (this.#large.length >= STEPPED_OVER_MAX || held >= HOLDS_EVERYBODY) return;
      this.#readHeads();
      if (large && held >= 1) this.#heads.fill(0, large.waiter.rank);
      if (keeps) this.#passOverOthers(isRoomFor);
      const rank = this.#order.choose(this.#heads);
      if (rank < 0) return;
      const standing = this.#queues[rank]!.first!.item;
      if (standing.waiter.onTurn() === 'none') this.#park(standing, now);
    }
  }

  /** What would be served before one that comes now. */
  ahead(waiter: Pick<Waiter, 'rank' | 'tenant' | 'share'>, places: number, running: number): Ahead {
    const { rank, tenant, share } = waiter;
    let above = 0;
    for (let higher = 0; higher < rank; higher++) above += this.#work[higher]!;
    const queue = this.#queues[rank]!;
    const parked = this.#work[rank]! - queue.work;
    return {
      rank,
      above,
      own: parked + queue.ahead(tenant, share),
      places,
      running,
      floors: this.floors,
      waits: (at) => this.#counts[at]! > 0,
    };
  }

  /** Takes out everybody. */
  clear(): Waiter[] {
    const all: Standing[] = [];
    for (const queue of this.#queues) {
      for (let place = queue.first; place; place = queue.first) {
        queue.remove(place);
        all.push(place.item);
      }
    }
    for (const chain of [...this.#pinned.values(), this.#large]) {
      for (let link = chain.first; link; link = chain.first) {
        chain.remove(link);
        all.push(link.item);
      }
    }
    this.#pinned.clear();
    this.drain.pause();
    for (const standing of all) this.#gone(standing, undefined);
    return all.map(({ waiter }) => waiter);
  }

  #offerPinned(now: number): void {
    for (const [endpoint, chain] of this.#pinned) {
      while (endpoint.hasRoom || endpoint.waitMs(now) > 0) {
        const first = chain.first?.item;
        if (!first || !this.#mayGo(first, this.#heldUp(first, now))) break;
        if (first.waiter.onTurn() === 'none') break;
      }
    }
  }

  #park(standing: Standing, now: number): void {
    const { place, waiter } = standing;
    if (!place) return; // it has gone meanwhile
    this.#queues[waiter.rank]!.remove(place);
    standing.place = undefined;
    standing.parkedAt = now;
    let chain = this.#large;
    if (waiter.only) {
      chain = this.#pinned.get(waiter.only) ?? new Chain();
      this.#pinned.set(waiter.only, chain);
    }
    standing.parked = chain.push(standing);
  }

  #unpark(link: Link<Standing>): void {
    link.chain?.remove(link);
    const { only } = link.item.waiter;
    if (only && this.#pinned.get(only)?.length === 0) this.#pinned.delete(only);
  }

  /** One that is parked goes behind higher priorities, until it has waited its bound out. */
  #mayGo({ waiter }: Standing, held: number): boolean {
    if (held >= 1) return true;
    for (let higher = 0; higher < waiter.rank; higher++) if (this.#queues[higher]!.length > 0) return false;
    return true;
  }

  /** How many times over the one that was stepped over has waited its bound out. */
  #heldUp({ parkedAt, passedBy }: Standing, now: number): number {
    return Math.max(passedBy / PASSED_BY_MAX, (now - parkedAt) / PARKED_MS_MAX);
  }

  /** Whom the places that are left are not for is passed over, with all lower priorities: they do not go before it. */
  #passOverOthers(isRoomFor: (claim: Claim) => boolean): void {
    for (let rank = 1; rank < RANKS; rank++) {
      if (this.#heads[rank] === 0 || isRoomFor(this.#queues[rank]!.first!.item.waiter)) continue;
      this.#heads.fill(0, rank);
      return;
    }
  }

  #readHeads(): void {
    for (let rank = 0; rank < RANKS; rank++) this.#heads[rank] = this.#queues[rank]!.first?.work ?? 0;
  }

  #gone(standing: Standing, now: number | undefined): void {
    const { rank, work } = standing.waiter;
    standing.place = undefined;
    standing.parked = undefined;
    if (--this.#counts[rank]! === 0) this.#work[rank] = 0;
    else this.#work[rank]! -= work;
    if (--this.#length === 0 && now !== undefined) this.drain.contested(now, false);
  }
}
