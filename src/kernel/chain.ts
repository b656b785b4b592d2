/** The place of one item in a chain. */
export interface Link<Item> {
  readonly item: Item;
  before: Link<Item> | undefined;
  after: Link<Item> | undefined;
  /** The chain that it is in; undefined once it has been taken out. */
  chain: Chain<Item> | undefined;
}

/** Items in the order in which they came. Any of them leaves at no more cost than the first. */
export class Chain<Item> {
  first: Link<Item> | undefined;
  last: Link<Item> | undefined;
  length = 0;

  push(item: Item): Link<Item> {
    const link: Link<Item> = { item, before: this.last, after: undefined, chain: this };
    if (this.last) this.last.after = link;
    else this.first = link;
    this.last = link;
    this.length++;
    return link;
  }

  /** False where it is not in here (any more). */
  remove(link: Link<Item>): boolean {
    if (link.chain !== this) return false;
    link.chain = undefined;
    if (link.before) link.before.after = link.after;
    else this.first = link.after;
    if (link.after) link.after.before = link.before;
    else this.last = link.before;
    // What has left keeps nobody alive that is left behind it.
    link.before = undefined;
    link.after = undefined;
    this.length--;
    return true;
  }
}
