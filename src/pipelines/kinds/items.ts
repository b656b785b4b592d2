import { isObject } from '../../protocols/json-object.ts';
import { type Filling, StageFault, type StageItem } from './contracts.ts';

/** The longest list that a stage takes: each of its items costs memory, and most of them a call. */
const ITEMS_MAX = 1024;

/**
 * The list that an expression gives, as items: texts, numbers, objects with a `text`; of a whole stage its own items. Throws a
 * StageFault for anything else; `what` is the name of the setting.
 */
export function itemsOf(filling: Filling, expression: string, what: string): StageItem[] {
  const fault = (message: string) => new StageFault(message, filling.isCallers(expression));
  const value = filling.value(expression);
  const list = isObject(value) && Array.isArray(value['items']) ? (value['items'] as unknown[]) : value;
  if (!Array.isArray(list)) {
    throw fault(
      `\`${what}\` is to be a list, and \`${expression.slice(0, 100)}\` gives ${kindOfValue(list)}`,
    );
  }
  if (list.length > ITEMS_MAX) {
    throw fault(`\`${what}\` has ${list.length} items, and ${ITEMS_MAX} are the most`);
  }
  return list.map((item: unknown, index) => {
    const read = itemOf(item);
    if (read) return read;
    throw fault(`item ${index + 1} of \`${what}\` is neither a text nor an object with a text`);
  });
}

function kindOfValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  return isObject(value) ? 'an object' : `a ${typeof value}`;
}

function itemOf(item: unknown): StageItem | undefined {
  if (typeof item === 'string') return { text: item };
  if (typeof item === 'number' || typeof item === 'boolean') return { text: String(item) };
  if (!isObject(item) || typeof item['text'] !== 'string') return undefined;
  const { score, ...more } = item;
  const read: StageItem = { ...more, text: item['text'] };
  if (typeof score === 'number' && Number.isFinite(score)) read.score = score;
  return read;
}
