import { Chain, type Link } from '../../kernel/chain.ts';
import { Heap } from '../../kernel/heap.ts';

/** Below so many places the floors keep none: there are too few to go round. */
const PLACES_KEPT_FROM = 16;

interface Group<Item> {
  readonly tenant: string;
  share: number;
  work: number;
  readonly waiting: Chain<Standing<Item>>;
  /** In the heap; -1 where nobody does. */
  slot: number;
}

export interface Standing<Item> {
  readonly item: Item;
  readonly work: number;
  readonly rank: number;
  readonly group: Group<Item>;
  link: Link<Standing<Item>> | undefined;
}

export interface Newcomer {
  /** Place of its priority, 0 the highest. */
  rank: number;
  tenant: string;
  share: number;
  work: number;
}

export interface Yielding<Item> {
  item: Item;
  /** Why this one: its priority is lower, its tenant has more than its share, or the newcomer's priority less than its floor. */
  rule: 'lower-priority' | 'tenant-over-share' | 'priority-under-floor';
}

const GROUPS_KEPT_MAX = 4096;

/**
 * Those who wait in one queue of a bounded length, and who of them yields its place when it is full: the newest of the
 * lowest priority, of the tenant with the most work in the queue for its share.
 */
export class Displacement<Item> {
  readonly name = 'displacement';
  readonly version = 1;
  /** All who wait. */
  count = 0;
  readonly #counts: number[];
  readonly #groups: Map<string, Group<Item>>[];
  /** Groups that somebody waits of, by priority: the one with most for its share first. */
  readonly #active: Heap<Group<Item>>[];

  constructor(ranks: number) {
    this.#counts = new Array(ranks).fill(0);
    this.#groups = Array.from({ length: ranks }, () => new Map());
    this.#active = Array.from({ length: ranks }, () => new Heap(hasMore));
  }

  waitingOf(rank: number): number {
    return this.#counts[rank]!;
  }

  add(item: Item, { rank, tenant, share, work }: Newcomer): Standing<Item> {
    const groups = this.#groups[rank]!;
    let group = groups.get(tenant);
    if (!group) {
      group = { tenant, share, work: 0, waiting: new Chain(), slot: -1 };
      groups.set(tenant, group);
    }
    group.share = share;
    group.work += work;
    if (group.slot < 0) this.#active[rank]!.add(group);
    else this.#active[rank]!.changed(group);
    const standing: Standing<Item> = { item, work, rank, group, link: undefined };
    standing.link = group.waiting.push(standing);
    this.#counts[rank]!++;
    this.count++;
    return standing;
  }

  remove({ link, work, rank, group }: Standing<Item>): void {
    if (!link || !group.waiting.remove(link)) return;
    group.work -= work;
    this.#counts[rank]!--;
    this.count--;
    if (group.waiting.length > 0) {
      this.#active[rank]!.changed(group);
      return;
    }
    group.work = 0;
    this.#active[rank]!.remove(group);
    if (this.#groups[rank]!.size > GROUPS_KEPT_MAX) this.#groups[rank]!.delete(group.tenant);
  }

  /**
   * Who yields to the newcomer in a full queue of `max` places; undefined: nobody, it is refused itself. `floors`: shares
   * of the queue below which no priority is brought.
   */
  decide(newcomer: Newcomer, floors: readonly number[], max: number): Yielding<Item> | undefined {
    const { rank, tenant, share, work } = newcomer;
    for (let lower = this.#counts.length - 1; lower > rank; lower--) {
      if (this.#counts[lower]! > kept(floors, lower, max)) return yields(this.#most(lower), 'lower-priority');
    }
    const most = this.#most(rank);
    const mine = this.#groups[rank]!.get(tenant);
    if (most && most !== mine && ((mine?.work ?? 0) + work) / share < most.work / most.share)
      return yields(most, 'tenant-over-share');
    if (this.#counts[rank]! >= kept(floors, rank, max)) return undefined;
    for (let higher = rank - 1; higher >= 0; higher--) {
      if (this.#counts[higher]! > kept(floors, higher, max))
        return yields(this.#most(higher), 'priority-under-floor');
    }
    return undefined;
  }

  /** The tenant that has the most work waiting for its share. */
  #most(rank: number): Group<Item> | undefined {
    return this.#active[rank]!.first;
  }
}

function hasMore<Item>(a: Group<Item>, b: Group<Item>): boolean {
  return a.work / a.share > b.work / b.share;
}

function kept(floors: readonly number[], rank: number, max: number): number {
  return max < PLACES_KEPT_FROM ? 0 : Math.max(1, Math.floor(floors[rank]! * max));
}

function yields<Item>(
  group: Group<Item> | undefined,
  rule: Yielding<Item>['rule'],
): Yielding<Item> | undefined {
  return group && { item: group.waiting.last!.item.item, rule };
}
