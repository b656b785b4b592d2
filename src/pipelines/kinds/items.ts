import { StageFault, type StageItem } from './contracts.ts';
import { isObject } from './json.ts';

/** The longest list that a stage takes: each of its items costs memory, and most of them a call. */
export const ITEMS_MAX = 2048;

/**
 * A list that an expression gave, as items: texts, numbers, objects with a `text`; of a whole stage its own items. Throws a
 * StageFault for anything else.
 */
export function itemsOf(value: unknown, what: string): StageItem[] {
  const list = isObject(value) && Array.isArray(value['items']) ? (value['items'] as unknown[]) : value;
  if (!Array.isArray(list)) {
    const found =
      list === undefined || list === null ? 'nothing' : isObject(list) ? 'an object' : `a ${typeof list}`;
    throw new StageFault(`\`${what}\` gives ${found} where a list is expected`);
  }
  if (list.length > ITEMS_MAX) {
    throw new StageFault(`\`${what}\` gives ${list.length} items, and ${ITEMS_MAX} are the most`);
  }
  return list.map((item: unknown, index) => itemOf(item, index, what));
}

function itemOf(item: unknown, index: number, what: string): StageItem {
  if (typeof item === 'string') return { text: item };
  if (typeof item === 'number' || typeof item === 'boolean') return { text: String(item) };
  if (isObject(item) && typeof item['text'] === 'string') {
    const { score, ...more } = item;
    return typeof score === 'number'
      ? { ...more, text: item['text'], score }
      : { ...more, text: item['text'] };
  }
  throw new StageFault(`item ${index + 1} of \`${what}\` is neither a text nor an object with a text`);
}
