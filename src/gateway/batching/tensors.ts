import { isUtf8 } from 'node:buffer';
import { canonicalMembers, canonicalObject } from '../../protocols/canonical-json.ts';
import {
  type Member,
  type Place,
  rawValue,
  scanElements,
  scanMembers,
} from '../../protocols/json-members.ts';
import type { Joiner, Part, Share } from './contracts.ts';
import { hasTwice, replaced, withMembers } from './pieces.ts';

/** Beyond this a request goes by itself: what is said beside the data is short. */
const REST_CHARACTERS_MAX = 16_384;
/** Raw tensors beside the JSON: those who ask for them go by themselves. */
const RAW = /"binary_data/;
const OPEN_BRACKET = 0x5b;

interface Input {
  /** All members but `shape` and `data`, as an object; and what else has to agree. */
  members: string;
  head: string;
  row: readonly number[];
  count: number;
  /** Elements of `data`, without its brackets. */
  data: string;
}

interface TensorsPart extends Part {
  inputs: readonly Input[];
  /** Members beside `inputs` and `id`, as an object. */
  rest: string;
  id: string | undefined;
}

/** What of an inference request can be joined with others along its first dimension; undefined where it has to go by itself. */
export function tensorsPart(body: Buffer): Part | undefined {
  const scanned = isUtf8(body) ? scanMembers(body) : 'no text';
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const given = scanned.members.find(({ key }) => key === 'inputs');
  const places = given && scanElements(body, given.start, given.end);
  if (!places || places.length === 0) return undefined;
  const inputs = places.map((place) => readInput(body, place));
  const count = inputs[0]?.count ?? 0;
  if (!inputs.every((input): input is Input => input !== undefined && input.count === count))
    return undefined;
  const beside = scanned.members.filter(({ key }) => key !== 'inputs' && key !== 'id');
  const rest = canonicalOf(body, beside);
  const heads = inputs.map(({ head }) => head).join('\n');
  if (rest === undefined || rest.length + heads.length > REST_CHARACTERS_MAX || RAW.test(rest + heads)) {
    return undefined;
  }
  const named = scanned.members.find(({ key }) => key === 'id');
  const id = named && rawValueOf(body, named);
  const part: TensorsPart = { key: `tensors\n${rest}\n${heads}`, count, joiner, inputs, rest, id };
  return part;
}

function readInput(body: Buffer, { start, end }: Place): Input | undefined {
  const scanned = scanMembers(body, start, end);
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const find = (key: string) => scanned.members.find((member) => member.key === key);
  const data = find('data');
  const shape = readShape(body, find('shape'));
  if (!data || !shape || shape.length === 0 || shape.includes(0)) return undefined;
  const [count, ...row] = shape as [number, ...number[]];
  const elements = scanElements(body, data.start, data.end);
  const nested = elements && readNesting(body, data, elements, count, row);
  const others = scanned.members.filter(({ key }) => key !== 'data' && key !== 'shape');
  const members = canonicalOf(body, others);
  if (nested === undefined || members === undefined) return undefined;
  const head = `${members} ${nested} ${JSON.stringify(row)}`;
  return { members, head, row, count, data: span(body, elements!) };
}

/**
 * Whether rows are lists or all elements stand in one; undefined unless each row has exactly the elements that its shape
 * says, so that nobody's rows can move into another's.
 */
function readNesting(
  body: Buffer,
  data: Member,
  elements: readonly Place[],
  count: number,
  row: readonly number[],
): 'nested' | 'flat' | undefined {
  const size = row.reduce((product, each) => product * each, 1);
  let values: unknown[];
  try {
    values = JSON.parse(body.toString('utf8', data.start, data.end)) as unknown[];
  } catch {
    return undefined;
  }
  if (!values.some(Array.isArray)) return elements.length === count * size ? 'flat' : undefined;
  const sound =
    values.length === count && values.every((each) => Array.isArray(each) && each.flat(32).length === size);
  return sound ? 'nested' : undefined;
}

const joiner: Joiner = {
  join(parts) {
    const all = parts as readonly TensorsPart[];
    const { inputs, rest } = all[0]!;
    const count = all.reduce((sum, part) => sum + part.count, 0);
    const joined = inputs.map(({ members, row }, at) => {
      const data = all.map((part) => part.inputs[at]!.data).join(',');
      return withMembers(members, `"shape":${JSON.stringify([count, ...row])},"data":[${data}]`);
    });
    return Buffer.from(withMembers(rest, `"inputs":[${joined.join(',')}]`));
  },

  split(answer, parts) {
    const all = parts as readonly TensorsPart[];
    const scanned = scanMembers(answer);
    if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
    const given = scanned.members.find(({ key }) => key === 'outputs');
    const places = given && scanElements(answer, given.start, given.end);
    if (!places) return undefined;
    const total = all.reduce((sum, { count }) => sum + count, 0);
    const outputs = places.map((place) => readOutput(answer, place, total));
    if (!outputs.every((output): output is Output => output !== undefined)) return undefined;
    const named = scanned.members.find(({ key }) => key === 'id');
    let from = 0;
    return all.map(({ count, id }): Share => {
      const own = outputs.map((output) => rowsOf(output, from, count));
      from += count;
      const edits = new Map([[given, `[${own.join(',')}]`]]);
      if (named) edits.set(named, id ?? '""');
      const body = replaced(answer, edits);
      return {
        body: named || id === undefined ? body : withId(body, scanned.inside, id),
        tokensIn: undefined,
      };
    });
  },
};

interface Output {
  /** Its own bytes, in which the places lie. */
  bytes: Buffer;
  shape: Member;
  data: Member;
  dimensions: readonly number[];
  elements: readonly Place[];
  /** Elements of the list for each row. */
  perRow: number;
}

function readOutput(answer: Buffer, { start, end }: Place, total: number): Output | undefined {
  const bytes = answer.subarray(start, end);
  const scanned = scanMembers(bytes);
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const shape = scanned.members.find(({ key }) => key === 'shape');
  const data = scanned.members.find(({ key }) => key === 'data');
  const dimensions = readShape(bytes, shape);
  const elements = data && scanElements(bytes, data.start, data.end);
  if (!shape || !data || !elements || dimensions?.[0] !== total) return undefined;
  const perRow = elements.length / total;
  const flat = dimensions.slice(1).reduce((product, size) => product * size, 1);
  const nested = perRow === 1 && bytes[elements[0]!.start] === OPEN_BRACKET;
  return perRow === flat || nested ? { bytes, shape, data, dimensions, elements, perRow } : undefined;
}

/** An output with rows `from` to `from + count` alone, its other members as they were. */
function rowsOf(output: Output, from: number, count: number): string {
  const { bytes, shape, data, dimensions, elements, perRow } = output;
  const own = elements.slice(from * perRow, (from + count) * perRow);
  const edits = new Map([
    [shape, JSON.stringify([count, ...dimensions.slice(1)])],
    [data, `[${span(bytes, own)}]`],
  ]);
  return replaced(bytes, edits).toString('utf8');
}

/** From the first of the elements to the end of the last. */
function span(bytes: Buffer, elements: readonly Place[]): string {
  const last = elements.at(-1);
  return last ? bytes.toString('utf8', elements[0]!.start, last.end) : '';
}

function withId(body: Buffer, inside: number, id: string): Buffer {
  return Buffer.concat([body.subarray(0, inside), Buffer.from(`"id":${id},`), body.subarray(inside)]);
}

function readShape(bytes: Buffer, member: Member | undefined): number[] | undefined {
  const places = member && scanElements(bytes, member.start, member.end);
  const shape = places?.map((place) => Number(bytes.toString('latin1', place.start, place.end)));
  return shape?.every((size) => Number.isSafeInteger(size) && size >= 0) ? shape : undefined;
}

function canonicalOf(bytes: Buffer, members: readonly Member[]): string | undefined {
  const text = members
    .map((member) => `${JSON.stringify(member.key)}:${rawValueOf(bytes, member)}`)
    .join(',');
  const canonical = canonicalMembers(`{${text}}`);
  return canonical && canonicalObject(canonical);
}

function rawValueOf(bytes: Buffer, member: Member): string {
  const ascii = rawValue(bytes, member);
  return /^[\x20-\x7e]*$/.test(ascii) ? ascii : bytes.toString('utf8', member.start, member.end);
}
