import type { Bytes } from './file-bytes.ts';

/** One field of a message, and the part of the file that holds its value. */
export interface Field {
  number: number;
  /** Of a varint; 0 elsewhere. */
  value: number;
  from: number;
  to: number;
}

/**
 * The fields of a message between two places of a file, one by one; what they hold is not read. Throws where it is no
 * message. Format: protobuf.dev/programming-guides/encoding; groups, which nobody writes any more, are not known.
 */
export function* fieldsOf(file: Bytes, from: number, to: number): Generator<Field> {
  const cursor = { at: from };
  while (cursor.at < to) {
    const tag = varint(file, cursor, to);
    const number = Math.floor(tag / 8);
    if (number === 0) throw new Error('a field has no number');
    const field = { number, value: 0, from: cursor.at, to: cursor.at };
    const type = tag % 8;
    if (type === 0) field.value = varint(file, cursor, to);
    else if (type === 1) cursor.at += 8;
    else if (type === 5) cursor.at += 4;
    else if (type === 2) {
      const length = varint(file, cursor, to);
      field.from = cursor.at;
      cursor.at += length;
    } else throw new Error('a field is of no known type');
    if (cursor.at > to) throw new Error('a field ends too late');
    field.to = cursor.at;
    yield field;
  }
}

/** The varints of a field: all of a packed one, or the one of a field that is not. */
export function numbersOf(file: Bytes, { from, to }: Field): number[] {
  const cursor = { at: from };
  const numbers: number[] = [];
  while (cursor.at < to) numbers.push(varint(file, cursor, to));
  return numbers;
}

/** The text of a field; of a longer one the beginning. */
export function textOf(file: Bytes, { from, to }: Field, charsMax = 1000): string {
  return file.read(from, Math.min(to - from, charsMax)).toString('utf8');
}

/** Beyond 2^53 not exact, and negative ones are not told: neither stands where we look. */
function varint(file: Bytes, cursor: { at: number }, to: number): number {
  let value = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    if (cursor.at >= to) throw new Error('a number ends too late');
    const byte = file.read(cursor.at++, 1)[0];
    if (byte === undefined) throw new Error('the file ends too early');
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return value;
  }
  throw new Error('a number has no end');
}
