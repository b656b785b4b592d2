import { Chain, type Link } from '../../kernel/chain.ts';
import { Heap } from '../../kernel/heap.ts';

/** Tenants that nobody waits for any more are remembered up to so many. */
const FLOWS_KEPT_MAX = 4096;

/** So many tenants are looked at for a prediction. */
const LOOKED_AT_MAX = 64;

/** Those of one tenant, in the order in which they came. */
class Flow<Item> {
  readonly tenant: string;
  share = 1;
  /** Virtual start of the first that waits, or, where nobody does, where the next may start at the earliest. */
  start = 0;
  work = 0;
  readonly waiting = new Chain<Place<Item>>();
  /** In the heap; -1 where nobody waits. */
  slot = -1;

  constructor(tenant: string) {
    this.tenant = tenant;
  }
}

/** The place of one that waits. */
export interface Place<Item> {
  readonly item: Item;
  readonly work: number;
  readonly order: number;
  readonly flow: Flow<Item>;
  link: Link<Place<Item>> | undefined;
}

/**
 * Those who wait at one priority: fair between their tenants by work (tokens), first come first served within a tenant.
 * Start-time fair queueing; every operation costs at most the logarithm of the number of tenants that wait.
 */
export class FairQueue<Item> {
  readonly name = 'fair-queue';
  readonly version = 1;
  length = 0;
  /** Work of all who wait. */
  work = 0;
  readonly #flows = new Map<string, Flow<Item>>();
  /** Tenants that wait, the one with the earliest start first. */
  readonly #heap = new Heap<Flow<Item>>(before);
  /** Virtual time: the start of the last that was served. */
  #virtual = 0;
  #order = 0;

  /** `share`: the tenant's weight against the others. */
  add(item: Item, tenant: string, share: number, work: number): Place<Item> {
    const flow = this.#flow(tenant);
    flow.share = share;
    const place: Place<Item> = { item, work, order: this.#order++, flow, link: undefined };
    place.link = flow.waiting.push(place);
    flow.work += work;
    this.work += work;
    this.length++;
    if (flow.slot < 0) {
      flow.start = Math.max(flow.start, this.#virtual);
      this.#heap.add(flow);
    }
    return place;
  }

  /** Whose turn it is. */
  get first(): Place<Item> | undefined {
    return this.#heap.first?.waiting.first?.item;
  }

  /** It was given what it waited for: its tenant pays with its share. False where it was not waiting. */
  serve(place: Place<Item>): boolean {
    const { flow } = place;
    const { start } = flow;
    if (!this.remove(place)) return false;
    this.#virtual = Math.max(this.#virtual, start);
    flow.start = start + place.work / flow.share;
    if (flow.slot >= 0) this.#heap.changed(flow);
    return true;
  }

  /** It waits no more, and pays nothing. */
  remove(place: Place<Item>): boolean {
    const { flow, link } = place;
    if (!link || !flow.waiting.remove(link)) return false;
    flow.work -= place.work;
    this.work -= place.work;
    this.length--;
    if (flow.waiting.length === 0) this.#rest(flow);
    else this.#heap.changed(flow); // of equal starts the one who came first goes first, and that may have changed
    return true;
  }

  /**
   * Work that would be served before one that `tenant` adds now, at most: its own that waits, and of each other tenant what
   * starts no later. Of many tenants only the first are looked at.
   */
  ahead(tenant: string, share: number): number {
    const mine = this.#flows.get(tenant);
    const own = mine?.work ?? 0;
    const start = Math.max(mine?.start ?? 0, this.#virtual) + own / share;
    let others = 0;
    let lately = 0;
    const { items } = this.#heap;
    const looked = Math.min(items.length, LOOKED_AT_MAX);
    for (let at = 0; at < looked; at++) {
      const flow = items[at]!;
      if (flow === mine || flow.start > start) continue;
      const begun = flow.work / flow.waiting.length;
      const before = Math.min(flow.work, (start - flow.start) * flow.share + begun);
      others += before;
      if (at >= LOOKED_AT_MAX / 2) lately += before;
    }
    // Those further down start no earlier: each is taken to be like the last that were looked at.
    if (items.length > looked) others += ((items.length - looked) * lately) / (LOOKED_AT_MAX / 2);
    return Math.min(this.work, own + others);
  }

  #flow(tenant: string): Flow<Item> {
    let flow = this.#flows.get(tenant);
    if (!flow) {
      flow = new Flow(tenant);
      this.#flows.set(tenant, flow);
    }
    return flow;
  }

  #rest(flow: Flow<Item>): void {
    flow.work = 0; // sums of fractions leave dust
    this.#heap.remove(flow);
    if (this.length === 0) this.work = 0;
    if (this.#flows.size > FLOWS_KEPT_MAX) this.#flows.delete(flow.tenant);
  }
}

function before<Item>(a: Flow<Item>, b: Flow<Item>): boolean {
  if (a.start !== b.start) return a.start < b.start;
  return a.waiting.first!.item.order < b.waiting.first!.item.order;
}
