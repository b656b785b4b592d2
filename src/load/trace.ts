import { readFileSync, statSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** One request of a recorded trace. */
export interface TraceRow {
  /** Milliseconds after the first row. */
  atMs: number;
  promptTokens: number;
  outputTokens: number;
}

const FILE_BYTES_MAX = 256 * 2 ** 20;
const TEXT_BYTES_MAX = 512 * 2 ** 20;

/** Columns, by their names in the Azure LLM inference traces (lower case). */
const COLUMNS = { at: 'timestamp', prompt: 'contexttokens', output: 'generatedtokens' } as const;

/**
 * Reads a CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens, gzip or not. A time stamp is a date, or a
 * number of seconds. The result is a message where it cannot be read. Rows are sorted by time.
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
  const lines = text.split(/\r?\n/);
  const names = lines[0]!.split(',').map((name) => name.trim().toLowerCase());
  const columns = Object.values(COLUMNS).map((name) => names.indexOf(name));
  if (columns.includes(-1)) {
    return 'the first line must name the columns TIMESTAMP, ContextTokens and GeneratedTokens';
  }
  const rows: TraceRow[] = [];
  for (let i = 1; i < lines.length; i++) {
    if (lines[i] === '') continue;
    const cells = lines[i]!.split(',');
    const [at, promptTokens, outputTokens] = columns.map((column) => cells[column]?.trim() ?? '');
    const row = { atMs: timeOf(at!), promptTokens: count(promptTokens!), outputTokens: count(outputTokens!) };
    if (Object.values(row).some(Number.isNaN)) return `line ${i + 1} is no row: ${lines[i]!.slice(0, 80)}`;
    rows.push(row);
  }
  if (rows.length === 0) return 'it has no rows';
  rows.sort((a, b) => a.atMs - b.atMs);
  const first = rows[0]!.atMs;
  return rows.map((row) => ({ ...row, atMs: row.atMs - first }));
}

function count(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

/** Milliseconds; dates may have more digits of a second than Date.parse reads. */
function timeOf(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const match = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})?$/.exec(text);
  if (!match) return Number.NaN;
  return Date.parse(`${match[1]}T${match[2]}${match[4] ?? 'Z'}`) + Number(match[3] ?? 0) * 1000;
}
