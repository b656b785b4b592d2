import { type Member, type Place, scanElements } from '../../protocols/json-members.ts';

/** The parameter of a tensor that says how many raw bytes behind the JSON belong to it. */
export const RAW_SIZE = 'binary_data_size';

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

/** From the first of the elements to the end of the last, as text. */
export function span(bytes: Buffer, elements: readonly Place[]): string {
  const last = elements.at(-1);
  return last ? bytes.toString('utf8', elements[0]!.start, last.end) : '';
}

/** A value's own text. */
export function valueText(bytes: Buffer, { start, end }: Place): string {
  return bytes.toString('utf8', start, end);
}

/** A list of whole numbers of 0 or more; undefined for anything else. */
export function readShape(bytes: Buffer, member: Place | undefined): number[] | undefined {
  const places = member && scanElements(bytes, member.start, member.end);
  const shape = places?.map((place) => Number(valueText(bytes, place)));
  return shape?.every((size) => Number.isSafeInteger(size) && size >= 0) ? shape : undefined;
}
