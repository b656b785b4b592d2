import { elementsOf, valuesOf } from '../../../protocols/oip/tensors.ts';
import type { Difference, ReadAnswer, ReadPair } from './contracts.ts';

export interface Tolerance {
  relative: number;
  absolute: number;
}

/** One output, or all vectors of an answer: rows of values, `width` of them in each. */
interface Table {
  name: string;
  width: number;
  /** Numbers, or texts and truth values where the output holds such. */
  values: readonly unknown[];
}

/**
 * The share of values that are further apart than `absolute + relative * |caller's|`, as in NumPy's `isclose`. Not a number
 * and infinity are near nothing but themselves; values that one side lacks, and outputs of another shape, differ.
 */
export function numeric({ caller, copy }: ReadPair<'vectors' | 'tensors'>, tolerance: Tolerance): Difference {
  return shareOf(tablesOf(caller), tablesOf(copy), (theirs, own) => {
    let apart = 0;
    for (let at = 0; at < theirs.values.length; at++)
      if (!isNear(theirs.values[at], own.values[at], tolerance)) apart++;
    return { apart, of: theirs.values.length };
  });
}

/**
 * The share of rows whose decision is another one: the place of the largest value in each row, or the value itself where a
 * row has but one that is no measured number. Undefined where the answers decide nothing: rows of one float.
 */
export function decision({ caller, copy }: ReadPair<'vectors' | 'tensors'>): Difference {
  return shareOf(tablesOf(caller), tablesOf(copy), (theirs, own) => {
    if (theirs.width === 0) return { apart: 0, of: 0 };
    if (
      theirs.width === 1 &&
      theirs.values.some((value) => typeof value === 'number' && !Number.isInteger(value))
    )
      return { apart: 0, of: 0 };
    const rows = theirs.values.length / theirs.width;
    let apart = 0;
    for (let row = 0; row < rows; row++) if (!isSameRow(theirs, own, row)) apart++;
    return { apart, of: rows };
  });
}

function isSameRow(theirs: Table, own: Table, row: number): boolean {
  const { width } = theirs;
  if (width > 1 && typeof theirs.values[row * width] === 'number')
    return largest(theirs, row) === largest(own, row);
  for (let at = row * width; at < (row + 1) * width; at++)
    if (theirs.values[at] !== own.values[at]) return false;
  return true;
}

/** The first place of the largest value in a row; -1 where it holds something that is no number. */
function largest({ values, width }: Table, row: number): number {
  let best = -1;
  let most = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < width; at++) {
    const value = values[row * width + at] as number;
    if (Number.isNaN(value)) return -1;
    if (best >= 0 && value <= most) continue;
    best = at;
    most = value;
  }
  return best;
}

function isNear(theirs: unknown, own: unknown, { relative, absolute }: Tolerance): boolean {
  if (Object.is(theirs, own) || theirs === own) return true;
  if (typeof theirs !== 'number' || typeof own !== 'number') return false;
  if (!Number.isFinite(theirs) || !Number.isFinite(own)) return false;
  return Math.abs(theirs - own) <= absolute + relative * Math.abs(theirs);
}

function shareOf(
  caller: readonly Table[],
  copy: readonly Table[],
  count: (theirs: Table, own: Table) => { apart: number; of: number },
): Difference {
  const sum = { apart: 0, of: 0 };
  for (const theirs of caller) {
    const own = copy.find(({ name }) => name === theirs.name);
    const fits = own && own.width === theirs.width && own.values.length === theirs.values.length;
    const rows = Math.max(1, theirs.values.length / Math.max(1, theirs.width));
    const { apart, of } = fits ? count(theirs, own) : { apart: rows, of: rows };
    sum.apart += apart;
    sum.of += of;
  }
  return sum.of === 0 ? undefined : sum.apart / sum.of;
}

function tablesOf(answer: ReadAnswer): Table[] {
  if (answer.kind === 'vectors') {
    const { vectors } = answer;
    return [{ name: '', width: vectors[0]!.length, values: vectors.flat() }];
  }
  if (answer.kind === 'texts') return [];
  return answer.tensors.map((tensor) => ({
    name: tensor.name,
    width: elementsOf(tensor.shape) === 0 ? 0 : (tensor.shape.at(-1) ?? 1),
    values: valuesOf(tensor),
  }));
}
