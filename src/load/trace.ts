import { readFileSync, statSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { type Priority, priorities } from '../kernel/priorities.ts';

/** One request of a recorded trace. */
export interface TraceRow {
  /** Milliseconds after the first row. */
  atMs: number;
  promptTokens: number;
  outputTokens: number;
  /** Where the trace says them. */
  route?: string;
  tenant?: string;
  session?: string;
  priority?: Priority;
  stream?: boolean;
  /** Who sent it, where that is not the name of a tenant. */
  client?: string;
}

const FILE_BYTES_MAX = 256 * 2 ** 20;
const TEXT_BYTES_MAX = 512 * 2 ** 20;

/** Columns, by the names that the Azure and Mooncake traces give them (lower case), and what is asked of the rest. */
const TIMES = ['timestamp'];
const PROMPTS = ['contexttokens', 'input_length'];
const OUTPUTS = ['generatedtokens', 'output_length'];
const EXTRAS = ['route', 'tenant', 'session', 'priority', 'stream'] as const;

/**
 * Reads a trace, gzip or not: a CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens, or JSON lines with
 * timestamp, input_length and output_length. A time stamp is a date or a number: of seconds in a CSV, of milliseconds in
 * JSON lines. Columns route, tenant, session, priority and stream are read where they are there. The result is a message
 * where it cannot be read. Rows are sorted by time.
 */
export function readTrace(file: string): TraceRow[] | string {
  let text: string;
  try {
    const { size } = statSync(file);
    if (size > FILE_BYTES_MAX) return `${file} has ${size} bytes; at most ${FILE_BYTES_MAX} are read`;
    const bytes = readFileSync(file);
    const plain = bytes[0] === 0x1f && bytes[1] === 0x8b;
    text = (plain ? gunzipSync(bytes, { maxOutputLength: TEXT_BYTES_MAX }) : bytes).toString('utf8');
  } catch (error) {
    return `${file} cannot be read: ${(error as Error).message}`;
  }
  const rows = parseTrace(text);
  return typeof rows === 'string' ? `${file}: ${rows}` : rows;
}

/** The same for the text of a file. */
export function parseTrace(text: string): TraceRow[] | string {
  const rows = text.trimStart().startsWith('{') ? jsonRows(text) : csvRows(text);
  if (typeof rows === 'string') return rows;
  if (rows.length === 0) return 'it has no rows';
  rows.sort((a, b) => a.atMs - b.atMs);
  const first = rows[0]!.atMs;
  return rows.map((row) => ({ ...row, atMs: row.atMs - first }));
}

function csvRows(text: string): TraceRow[] | string {
  const lines = text.split(/\r?\n/);
  const names = lines[0]!.split(',').map((name) => name.trim().toLowerCase());
  const find = (wanted: readonly string[]) => names.findIndex((name) => wanted.includes(name));
  const columns = [find(TIMES), find(PROMPTS), find(OUTPUTS)];
  if (columns.includes(-1)) {
    return 'the first line must name the columns TIMESTAMP, ContextTokens and GeneratedTokens';
  }
  const extras = EXTRAS.map((name) => [name, names.indexOf(name)] as const).filter(([, at]) => at >= 0);
  const rows: TraceRow[] = [];
  for (let i = 1; i < lines.length; i++) {
    if (lines[i] === '') continue;
    const cells = lines[i]!.split(',').map((cell) => cell.trim());
    const [at, promptTokens, outputTokens] = columns.map((column) => cells[column] ?? '');
    const row = rowOf(timeOf(at!, 1000), promptTokens!, outputTokens!, (name) => {
      const column = extras.find(([each]) => each === name)?.[1];
      return column === undefined ? undefined : cells[column];
    });
    if (!row) return `line ${i + 1} is no row: ${lines[i]!.slice(0, 80)}`;
    rows.push(row);
  }
  return rows;
}

function jsonRows(text: string): TraceRow[] | string {
  const rows: TraceRow[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue;
    const row = jsonRow(line);
    if (!row) return `line ${index + 1} is no row: ${line.slice(0, 80)}`;
    rows.push(row);
  }
  return rows;
}

function jsonRow(line: string): TraceRow | undefined {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined; // told by its line
  }
  const members = new Map(Object.entries(value).map(([name, member]) => [name.toLowerCase(), member]));
  const text = (names: readonly string[]) => {
    const found = names.find((name) => members.has(name));
    return found === undefined ? '' : String(members.get(found));
  };
  return rowOf(timeOf(text(TIMES), 1), text(PROMPTS), text(OUTPUTS), (name) =>
    members.has(name) ? String(members.get(name)) : undefined,
  );
}

/** Undefined where it is no row. */
function rowOf(
  atMs: number,
  prompt: string,
  output: string,
  extra: (name: (typeof EXTRAS)[number]) => string | undefined,
): TraceRow | undefined {
  const row: TraceRow = { atMs, promptTokens: count(prompt), outputTokens: count(output) };
  if (Number.isNaN(atMs + row.promptTokens + row.outputTokens)) return undefined;
  for (const name of ['route', 'tenant', 'session'] as const) {
    const value = extra(name);
    if (value) row[name] = value;
  }
  const priority = extra('priority');
  if (priority) {
    const known = priorities.find((each) => each === priority);
    if (!known) return undefined;
    row.priority = known;
  }
  const stream = extra('stream');
  if (stream) row.stream = stream === 'true' || stream === '1';
  return row;
}

function count(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

/** Milliseconds, where a number counts `unitMs` each; dates may have more digits of a second than Date.parse reads. */
function timeOf(text: string, unitMs: number): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * unitMs;
  const match = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})?$/.exec(text);
  if (!match) return Number.NaN;
  return Date.parse(`${match[1]}T${match[2]}${match[4] ?? 'Z'}`) + Number(match[3] ?? 0) * 1000;
}
