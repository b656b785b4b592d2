import type { Exchange, Path } from '../gateway/contracts.ts';
import { type Failure, invalidRequest } from '../kernel/errors.ts';
import type { ItemsPage, Page } from '../store/sessions.ts';
import { answerJson, listObject, readListQuery } from './answers.ts';

/** Lists of items: what is asked for, and what is answered. */

export function readPage(target: string): Page | Failure {
  const query = readListQuery(target, { limit: 20, limitMax: 100 });
  if ('code' in query) return query;
  const { limit, after, order } = query;
  return { limit, order, ...(after === undefined ? {} : { after }) };
}

export function answerItems(path: Path, x: Exchange, found: ItemsPage, { after }: Page): void {
  if (found.afterUnknown) {
    path.refuse(x, invalidRequest(`There is no item '${after!.slice(0, 100)}' in this list.`, 'after'));
    return;
  }
  const items = found.bodies.map((body) => JSON.parse(body) as { id: string });
  answerJson(path, x, listObject(items, found.more));
}
