import type { Member } from '../../protocols/json-members.ts';

/** Whether a key stands in an object more than once: two readers could take different values for it. */
export function hasTwice(members: readonly { key: string }[]): boolean {
  return new Set(members.map(({ key }) => key)).size < members.length;
}

/** A document with the values of some of its members replaced, in the order of their places; all else is as it was. */
export function replaced(document: Buffer, edits: ReadonlyMap<Member, string>): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const [{ start, end }, text] of [...edits].sort(([a], [b]) => a.start - b.start)) {
    pieces.push(document.subarray(from, start), Buffer.from(text));
    from = end;
  }
  pieces.push(document.subarray(from));
  return Buffer.concat(pieces);
}

/** An object, as text without white space, with more members behind its own. */
export function withMembers(object: string, more: string): string {
  return `${object.slice(0, -1)}${object === '{}' ? '' : ','}${more}}`;
}
