import { ELEMENT_BYTES } from '../../protocols/oip/tensors.ts';

/** Where each row of a raw tensor begins, and the end of the last; undefined where the bytes do not fit the shape. */
export function rawRows(
  data: Buffer,
  datatype: string,
  count: number,
  row: readonly number[],
): number[] | undefined {
  const elements = row.reduce((product, size) => product * size, 1);
  if (datatype === 'BYTES') return rowsOfTexts(data, count, elements);
  if (!Object.hasOwn(ELEMENT_BYTES, datatype)) return undefined;
  const bytes = elements * ELEMENT_BYTES[datatype as keyof typeof ELEMENT_BYTES];
  if (data.length !== count * bytes) return undefined;
  return Array.from({ length: count + 1 }, (_, at) => at * bytes);
}

/** An element of BYTES is its length in four bytes, and then itself. */
function rowsOfTexts(data: Buffer, count: number, elements: number): number[] | undefined {
  const starts: number[] = [];
  let at = 0;
  for (let element = 0; element < count * elements; element++) {
    if (element % elements === 0) starts.push(at);
    if (at + 4 > data.length) return undefined;
    at += 4 + data.readUInt32LE(at);
    if (at > data.length) return undefined;
  }
  starts.push(at);
  return at === data.length && starts.length === count + 1 ? starts : undefined;
}
