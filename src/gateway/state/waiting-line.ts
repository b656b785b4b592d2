import { type Priority, priorities } from '../../kernel/priorities.ts';
import { PriorityOrder } from '../../policies/priority-order/index.ts';

/** A request that waits for a place at an endpoint of one backend. */
export interface Waiter {
  priority: Priority;
  /** Called when a place may be had. False when that is no place for this one: it goes on waiting where it stood. */
  onTurn: () => boolean;
  /** No endpoint of the backend can be used any more: another way must be found. */
  onHopeless: () => void;
}

/**
 * Who waits for one backend: a queue for each priority, first come first served within it. Its length is bounded by the
 * routes' `queue.max`.
 */
export class WaitingLine {
  readonly #queues = new Map<Priority, Set<Waiter>>(priorities.map((priority) => [priority, new Set()]));
  readonly #order = new PriorityOrder();

  #length = 0;

  get length(): number {
    return this.#length;
  }

  waitingAt(priority: Priority): number {
    return this.#queues.get(priority)!.size;
  }

  join(waiter: Waiter): void {
    this.#queues.get(waiter.priority)!.add(waiter);
    this.#length++;
  }

  leave(waiter: Waiter): void {
    if (this.#queues.get(waiter.priority)!.delete(waiter)) this.#length--;
  }

  /** Offers `places` places to those who wait, in their order; who cannot use one is passed over, and keeps its turn. */
  offer(places: number): void {
    const passedOver: Waiter[] = [];
    for (let left = places; left > 0; ) {
      const waiter = this.#next();
      if (!waiter) break;
      if (waiter.onTurn()) left--;
      else passedOver.push(waiter);
    }
    for (const waiter of passedOver.reverse()) this.#putBack(waiter);
  }

  /** Takes out the one whose turn it is. */
  #next(): Waiter | undefined {
    if (this.#length === 0) return undefined;
    const waiting = priorities.map((priority) => this.waitingAt(priority));
    const priority = priorities[this.#order.decide({ waiting }).choice]!;
    const [waiter] = this.#queues.get(priority)!;
    this.leave(waiter!);
    return waiter;
  }

  #putBack(waiter: Waiter): void {
    const behind = this.#queues.get(waiter.priority)!;
    this.#queues.set(waiter.priority, new Set([waiter, ...behind]));
    this.#length++;
  }

  /** Takes out everybody. */
  clear(): Waiter[] {
    const all = [...this.#queues.values()].flatMap((queue) => [...queue]);
    for (const queue of this.#queues.values()) queue.clear();
    this.#length = 0;
    return all;
  }
}
