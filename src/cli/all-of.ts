import type { Running } from './running.ts';

/** Items of one answer. */
const PAGE = 1000;

/** Every item of a list of the management API, page by page; `path` is without a query. */
export async function allOf<Item>(running: Running, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let after = ''; ; ) {
    const page = await running.call<{ data: Item[]; next: string | null }>(`${path}?limit=${PAGE}${after}`);
    items.push(...page.data);
    if (page.next === null) return items;
    after = `&after=${encodeURIComponent(page.next)}`;
  }
}
