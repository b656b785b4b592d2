/**
 * One page of a list that is in memory: up to `limit` items behind the one that is called `after`, and what to ask for next, null
 * on the last. Undefined where none is called so.
 */
export function pageAfter<Item>(
  all: readonly Item[],
  nameOf: (item: Item) => string,
  { limit, after }: { limit: number; after?: string | undefined },
): { data: Item[]; next: string | null } | undefined {
  const from = after === undefined ? 0 : all.findIndex((item) => nameOf(item) === after) + 1;
  if (after !== undefined && from === 0) return undefined;
  const data = all.slice(from, from + limit);
  return { data, next: from + limit < all.length ? nameOf(data.at(-1)!) : null };
}
