import { type Member, rawValue, scanElements, scanMembers } from '../../protocols/json-members.ts';

/** One vector of an embeddings answer, where it stands in its document. */
export interface Row {
  start: number;
  end: number;
  index: Member;
}

/** The rows in the order of their inputs; undefined unless there is exactly one for each. */
export function readRows(answer: Buffer, data: Member, total: number): Row[] | undefined {
  const places = scanElements(answer, data.start, data.end);
  if (places?.length !== total) return undefined;
  const rows: Row[] = [];
  for (const { start, end } of places) {
    const scanned = scanMembers(answer, start, end);
    const found = typeof scanned === 'string' ? [] : scanned.members.filter(({ key }) => key === 'index');
    const index = found.length === 1 ? Number(rawValue(answer, found[0]!)) : -1;
    if (!Number.isSafeInteger(index) || index < 0 || index >= total || rows[index]) return undefined;
    rows[index] = { start, end, index: found[0]! };
  }
  return rows;
}

/** The row's own bytes, with another index. */
export function renumbered(answer: Buffer, { start, end, index }: Row, to: number): string {
  return `${answer.toString('utf8', start, index.start)}${to}${answer.toString('utf8', index.end, end)}`;
}
