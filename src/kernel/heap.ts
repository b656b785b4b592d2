/** What a heap can hold. The slot is the heap's own: -1 outside of it. */
export interface Heaped {
  slot: number;
}

/** A binary heap: the first is always known, and whatever is in it may leave or change its place. */
export class Heap<Item extends Heaped> {
  readonly items: Item[] = [];
  readonly #before: (a: Item, b: Item) => boolean;

  constructor(before: (a: Item, b: Item) => boolean) {
    this.#before = before;
  }

  get first(): Item | undefined {
    return this.items[0];
  }

  add(item: Item): void {
    item.slot = this.items.length;
    this.items.push(item);
    this.#rise(item);
  }

  remove(item: Item): void {
    const last = this.items.pop()!;
    const { slot } = item;
    item.slot = -1;
    if (last === item) return;
    this.items[slot] = last;
    last.slot = slot;
    this.changed(last);
  }

  /** To be called when what decides on the item's place has changed. */
  changed(item: Item): void {
    const { slot } = item;
    this.#rise(item);
    if (item.slot === slot) this.#sink(item);
  }

  #rise(item: Item): void {
    const { items } = this;
    let { slot } = item;
    while (slot > 0) {
      const above = (slot - 1) >> 1;
      const other = items[above]!;
      if (!this.#before(item, other)) break;
      items[slot] = other;
      other.slot = slot;
      slot = above;
    }
    items[slot] = item;
    item.slot = slot;
  }

  #sink(item: Item): void {
    const { items } = this;
    let { slot } = item;
    for (;;) {
      let below = 2 * slot + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && this.#before(items[below + 1]!, items[below]!)) below++;
      const other = items[below]!;
      if (!this.#before(other, item)) break;
      items[slot] = other;
      other.slot = slot;
      slot = below;
    }
    items[slot] = item;
    item.slot = slot;
  }
}
