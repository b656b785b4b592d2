import {
  type Member,
  type Place,
  rawValue,
  scanElements,
  scanMembers,
  stringValue,
} from '../../protocols/json-members.ts';
import type { Framed, Share } from './contracts.ts';
import { hasTwice, RAW_SIZE, readShape, replaced, span } from './pieces.ts';
import { rawRows } from './raw-rows.ts';

const OPEN_BRACKET = 0x5b;

/** One output of the joined request. */
interface Output {
  /** Its own bytes of the JSON, in which the places lie. */
  bytes: Buffer;
  shape: Member;
  dimensions: readonly number[];
  rows: JsonRows | RawRows;
}

interface JsonRows {
  data: Member;
  elements: readonly Place[];
  /** Elements of the list for each row. */
  perRow: number;
}

interface RawRows {
  size: Member;
  raw: Buffer;
  starts: readonly number[];
}

/** Each part's rows of every output, with its own `id`; undefined where they cannot be told apart. */
export function splitTensors(
  { body, jsonBytes }: Framed,
  parts: readonly { count: number; id: string | undefined }[],
): Share[] | undefined {
  const json = body.subarray(0, jsonBytes);
  const scanned = scanMembers(json);
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const given = scanned.members.find(({ key }) => key === 'outputs');
  const places = given && scanElements(json, given.start, given.end);
  if (!places) return undefined;
  const total = parts.reduce((sum, { count }) => sum + count, 0);
  const raw = { bytes: body.subarray(json.length), at: 0 };
  const outputs = places.map((place) => readOutput(json, place, total, raw));
  if (!outputs.every((output): output is Output => output !== undefined)) return undefined;
  if (raw.at !== raw.bytes.length) return undefined;
  const named = scanned.members.find(({ key }) => key === 'id');
  let from = 0;
  return parts.map(({ count, id }): Share => {
    const own = outputs.map((output) => rowsOf(output, from, count));
    from += count;
    const edits = new Map([[given, `[${own.map(({ text }) => text).join(',')}]`]]);
    if (named) edits.set(named, id ?? '""');
    const edited = replaced(json, edits);
    const head = named || id === undefined ? edited : withId(edited, scanned.inside, id);
    const bytes = own.flatMap((each) => each.raw ?? []);
    return bytes.length > 0
      ? { body: Buffer.concat([head, ...bytes]), jsonBytes: head.length, tokensIn: undefined }
      : { body: head, jsonBytes: undefined, tokensIn: undefined };
  });
}

function readOutput(
  json: Buffer,
  { start, end }: Place,
  total: number,
  raw: { bytes: Buffer; at: number },
): Output | undefined {
  const bytes = json.subarray(start, end);
  const scanned = scanMembers(bytes);
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const find = (key: string) => scanned.members.find((member) => member.key === key);
  const shape = find('shape');
  const dimensions = readShape(bytes, shape);
  if (!shape || dimensions?.[0] !== total) return undefined;
  const data = find('data');
  const rows = data
    ? readJson(bytes, data, dimensions, total)
    : readRaw(bytes, find('parameters'), find('datatype'), dimensions, raw);
  return rows && { bytes, shape, dimensions, rows };
}

function readJson(
  bytes: Buffer,
  data: Member,
  dimensions: readonly number[],
  total: number,
): JsonRows | undefined {
  const elements = scanElements(bytes, data.start, data.end);
  if (!elements) return undefined;
  const perRow = elements.length / total;
  const flat = dimensions.slice(1).reduce((product, size) => product * size, 1);
  const nested = perRow === 1 && bytes[elements[0]!.start] === OPEN_BRACKET;
  return perRow === flat || nested ? { data, elements, perRow } : undefined;
}

function readRaw(
  bytes: Buffer,
  parameters: Member | undefined,
  datatype: Member | undefined,
  [count, ...row]: readonly number[],
  raw: { bytes: Buffer; at: number },
): RawRows | undefined {
  const scanned = parameters && scanMembers(bytes, parameters.start, parameters.end);
  if (!scanned || typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const size = scanned.members.find(({ key }) => key === RAW_SIZE);
  const type = datatype && stringValue(bytes, datatype);
  const length = size ? Number(rawValue(bytes, size)) : -1;
  if (!size || type === undefined || !Number.isSafeInteger(length) || length < 0) return undefined;
  const own = raw.bytes.subarray(raw.at, raw.at + length);
  raw.at += length;
  const starts = own.length === length ? rawRows(own, type, count!, row) : undefined;
  return starts && { size, raw: own, starts };
}

/** An output with rows `from` to `from + count` alone, its other members as they were. */
function rowsOf(output: Output, from: number, count: number): { text: string; raw: Buffer | undefined } {
  const { bytes, shape, dimensions, rows } = output;
  const edits = new Map([[shape, JSON.stringify([count, ...dimensions.slice(1)])]]);
  let raw: Buffer | undefined;
  if ('raw' in rows) {
    raw = rows.raw.subarray(rows.starts[from], rows.starts[from + count]);
    edits.set(rows.size, String(raw.length));
  } else {
    const own = rows.elements.slice(from * rows.perRow, (from + count) * rows.perRow);
    edits.set(rows.data, `[${span(bytes, own)}]`);
  }
  return { text: replaced(bytes, edits).toString('utf8'), raw };
}

function withId(json: Buffer, inside: number, id: string): Buffer {
  return Buffer.concat([json.subarray(0, inside), Buffer.from(`"id":${id},`), json.subarray(inside)]);
}
