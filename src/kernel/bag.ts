/** What a bag can hold. The slot is the bag's own: -1 outside of it. */
export interface Bagged {
  slot: number;
}

/**
 * A set of objects that come and go often; an object can be in one bag at a time. Unlike a `Set`, it leaves nothing behind:
 * when a `Set` has filled up with deletions V8 copies it into a new table, and the old table, once it has reached the old
 * generation, keeps everything that was in it, and through the chain of tables all that follows, until the next full
 * collection. At thousands of requests a second that is most of what a worker allocates.
 */
export class Bag<Item extends Bagged> implements Iterable<Item> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: Item): void {
    if (item.slot >= 0) return;
    item.slot = this.#items.length;
    this.#items.push(item);
  }

  delete(item: Item): void {
    const { slot } = item;
    if (this.#items[slot] !== item) return;
    const last = this.#items.pop()!;
    item.slot = -1;
    if (last === item) return;
    this.#items[slot] = last;
    last.slot = slot;
  }

  /** What is in it now; deleting meanwhile does no harm. */
  [Symbol.iterator](): Iterator<Item> {
    return [...this.#items].values();
  }
}
