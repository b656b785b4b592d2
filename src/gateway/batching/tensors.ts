import { isUtf8 } from 'node:buffer';
import { canonicalMembers, canonicalObject } from '../../protocols/canonical-json.ts';
import {
  type Member,
  type Place,
  rawValue,
  scanElements,
  scanMembers,
  stringValue,
} from '../../protocols/json-members.ts';
import type { Joiner, Part } from './contracts.ts';
import { hasTwice, RAW_SIZE, readShape, span, valueText, withMembers } from './pieces.ts';
import { rawRows } from './raw-rows.ts';
import { splitTensors } from './split-tensors.ts';

/** Beyond this a request goes by itself: what is said beside the data is short. */
const REST_CHARACTERS_MAX = 16_384;

interface Input {
  /** All members but those that tell of rows, as an object; its parameters apart, as far as they agree. */
  members: string;
  parameters: string;
  /** What has to agree. */
  head: string;
  row: readonly number[];
  count: number;
  /** Elements of `data`, without its brackets; or raw bytes behind the JSON. */
  data: string | Buffer;
}

export interface TensorsPart extends Part {
  inputs: readonly Input[];
  /** Members beside `inputs` and `id`, as an object. */
  rest: string;
  /** As JSON. */
  id: string | undefined;
}

/**
 * What of an inference request can be joined with others along its first dimension; undefined where it has to go by
 * itself. `jsonBytes`: where its JSON ends, if raw tensors follow.
 */
export function tensorsPart(body: Buffer, jsonBytes: number | undefined): Part | undefined {
  const json = body.subarray(0, jsonBytes);
  const scanned = isUtf8(json) ? scanMembers(json) : 'no text';
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const given = scanned.members.find(({ key }) => key === 'inputs');
  const places = given && scanElements(json, given.start, given.end);
  if (!places || places.length === 0) return undefined;
  const raw = { bytes: body.subarray(json.length), at: 0 };
  const inputs = places.map((place) => readInput(json, place, raw));
  const count = inputs[0]?.count ?? 0;
  if (!inputs.every((input): input is Input => input !== undefined && input.count === count))
    return undefined;
  if (raw.at !== raw.bytes.length) return undefined;
  const rest = canonicalOf(
    json,
    scanned.members.filter(({ key }) => key !== 'inputs' && key !== 'id'),
  );
  const heads = inputs.map(({ head }) => head).join('\n');
  if (rest === undefined || rest.length + heads.length > REST_CHARACTERS_MAX) return undefined;
  const named = scanned.members.find(({ key }) => key === 'id');
  const id = named && valueText(json, named);
  const part: TensorsPart = { key: `tensors\n${rest}\n${heads}`, count, joiner, inputs, rest, id };
  return part;
}

/** Raw bytes behind the JSON, and how far they have been taken. */
interface Raw {
  bytes: Buffer;
  at: number;
}

const OF_ROWS = ['data', 'shape', 'parameters'];

function readInput(json: Buffer, { start, end }: Place, raw: Raw): Input | undefined {
  const scanned = scanMembers(json, start, end);
  if (typeof scanned === 'string' || hasTwice(scanned.members)) return undefined;
  const find = (key: string) => scanned.members.find((member) => member.key === key);
  const shape = readShape(json, find('shape'));
  if (!shape || shape.length === 0 || shape.includes(0)) return undefined;
  const [count, ...row] = shape as [number, ...number[]];
  const parameters = readParameters(json, find('parameters'));
  const members = canonicalOf(
    json,
    scanned.members.filter(({ key }) => !OF_ROWS.includes(key)),
  );
  if (!parameters || members === undefined) return undefined;
  const data = find('data');
  const datatype = find('datatype');
  const read =
    parameters.rawBytes === undefined
      ? data && readJson(json, data, count, row)
      : data
        ? undefined
        : readRaw(raw, parameters.rawBytes, datatype && stringValue(json, datatype), count, row);
  if (!read) return undefined;
  const head = `${members} ${parameters.text} ${read.form} ${JSON.stringify(row)}`;
  return { members, parameters: parameters.text, head, row, count, data: read.data };
}

function readParameters(
  json: Buffer,
  member: Member | undefined,
): { text: string; rawBytes: number | undefined } | undefined {
  if (!member || rawValue(json, member) === 'null') return { text: '{}', rawBytes: undefined };
  const all = canonicalMembers(json.toString('utf8', member.start, member.end));
  if (!all || hasTwice(all)) return undefined;
  const size = all.find(({ key }) => key === RAW_SIZE);
  const rawBytes = size && Number(size.value);
  if (rawBytes !== undefined && (!Number.isSafeInteger(rawBytes) || rawBytes < 0)) return undefined;
  return { text: canonicalObject(all.filter((each) => each !== size)), rawBytes };
}

interface Data {
  /** Parts of different forms cannot be joined. */
  form: 'nested' | 'flat' | 'raw';
  data: string | Buffer;
}

/**
 * Rows as lists, or all elements in one; undefined unless each row has exactly the elements that its shape says, so that
 * nobody's rows can move into another's.
 */
function readJson(json: Buffer, data: Member, count: number, row: readonly number[]): Data | undefined {
  const elements = scanElements(json, data.start, data.end);
  const size = row.reduce((product, each) => product * each, 1);
  let values: unknown[];
  try {
    values = JSON.parse(json.toString('utf8', data.start, data.end)) as unknown[];
  } catch {
    return undefined; // the engine says what is wrong with it
  }
  if (!elements) return undefined;
  const text = span(json, elements);
  if (!values.some(Array.isArray))
    return values.length === count * size ? { form: 'flat', data: text } : undefined;
  const sound =
    values.length === count && values.every((each) => Array.isArray(each) && each.flat(32).length === size);
  return sound ? { form: 'nested', data: text } : undefined;
}

function readRaw(
  raw: Raw,
  bytes: number,
  datatype: string | undefined,
  count: number,
  row: readonly number[],
): Data | undefined {
  const data = raw.bytes.subarray(raw.at, raw.at + bytes);
  raw.at += bytes;
  return data.length === bytes && datatype !== undefined && rawRows(data, datatype, count, row)
    ? { form: 'raw', data }
    : undefined;
}

const joiner: Joiner = {
  join(parts) {
    const all = parts as readonly TensorsPart[];
    const { inputs, rest } = all[0]!;
    const count = all.reduce((sum, part) => sum + part.count, 0);
    const raw: Buffer[] = [];
    const joined = inputs.map(({ members, parameters, row }, at) => {
      const data = all.map((part) => part.inputs[at]!.data);
      const bytes = data.filter((each) => typeof each !== 'string');
      raw.push(...bytes);
      const size = bytes.reduce((sum, { length }) => sum + length, 0);
      const said = bytes.length > 0 ? withMembers(parameters, `"${RAW_SIZE}":${size}`) : parameters;
      const told = said === '{}' ? '' : `,"parameters":${said}`;
      const values = bytes.length > 0 ? '' : `,"data":[${data.join(',')}]`;
      return withMembers(members, `"shape":${JSON.stringify([count, ...row])}${told}${values}`);
    });
    const json = Buffer.from(withMembers(rest, `"inputs":[${joined.join(',')}]`));
    return raw.length > 0
      ? { body: Buffer.concat([json, ...raw]), jsonBytes: json.length }
      : { body: json, jsonBytes: undefined };
  },
  split: (answer, parts) => splitTensors(answer, parts as readonly TensorsPart[]),
};

function canonicalOf(bytes: Buffer, members: readonly Member[]): string | undefined {
  const text = members.map((member) => `${JSON.stringify(member.key)}:${valueText(bytes, member)}`).join(',');
  const canonical = canonicalMembers(`{${text}}`);
  return canonical && canonicalObject(canonical);
}
