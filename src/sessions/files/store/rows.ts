import type { Row } from '../../../store/sqlite/database.ts';

/** What is kept of a file and of a batch. Times are milliseconds since the epoch. */

export interface StoredFile {
  id: string;
  tenant: string;
  purpose: string;
  filename: string;
  bytes: number;
  createdMs: number;
  /** Undefined: kept until it is deleted. */
  expiresMs: number | undefined;
}

const OPEN_STATUSES = ['validating', 'in_progress', 'finalizing', 'cancelling'] as const;
export type OpenStatus = (typeof OPEN_STATUSES)[number];
/** As SQL has them. It is the condition of the index `batches_open`, by the letter. */
export const OPEN = `(${OPEN_STATUSES.map((status) => `'${status}'`).join(', ')})`;
export type EndStatus = 'completed' | 'failed' | 'expired' | 'cancelled';
export type BatchStatus = OpenStatus | EndStatus;

/** What is wrong with a batch, or with a line of its file, counted from 1. */
export interface BatchFault {
  code: string;
  message: string;
  param: string | null;
  line: number | null;
}

export interface StoredBatch {
  /** Its place among all batches. */
  seq: number;
  id: string;
  tenant: string;
  endpoint: string;
  inputFile: string;
  completionWindow: string;
  metadata: Record<string, string> | null;
  outputKeptMs: number | undefined;
  status: BatchStatus;
  errors: BatchFault[] | null;
  total: number;
  completed: number;
  failed: number;
  outputFile: string | undefined;
  errorFile: string | undefined;
  createdMs: number;
  expiresMs: number;
  /** When it came to be so; undefined where it did not. */
  since: Partial<Record<Exclude<BatchStatus, 'validating'>, number>>;
  epoch: number;
}

export function readFile(row: Row): StoredFile {
  return {
    id: String(row['id']),
    tenant: String(row['tenant']),
    purpose: String(row['purpose']),
    filename: String(row['filename']),
    bytes: Number(row['bytes']),
    createdMs: Number(row['created_ms']),
    expiresMs: numberOf(row['expires_ms']),
  };
}

const SINCE = [
  'in_progress',
  'finalizing',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const satisfies readonly Exclude<BatchStatus, 'validating'>[];

export function readBatch(row: Row): StoredBatch {
  const since: StoredBatch['since'] = {};
  for (const status of SINCE) {
    const ms = numberOf(row[`${status}_ms`]);
    if (ms !== undefined) since[status] = ms;
  }
  return {
    seq: Number(row['seq']),
    id: String(row['id']),
    tenant: String(row['tenant']),
    endpoint: String(row['endpoint']),
    inputFile: String(row['input_file']),
    completionWindow: String(row['completion_window']),
    metadata: jsonOf(row['metadata']) as StoredBatch['metadata'],
    outputKeptMs: numberOf(row['output_kept_ms']),
    status: String(row['status']) as BatchStatus,
    errors: jsonOf(row['errors']) as StoredBatch['errors'],
    total: Number(row['total']),
    completed: Number(row['completed']),
    failed: Number(row['failed']),
    outputFile: textOf(row['output_file']),
    errorFile: textOf(row['error_file']),
    createdMs: Number(row['created_ms']),
    expiresMs: Number(row['expires_ms']),
    since,
    epoch: Number(row['epoch']),
  };
}

function numberOf(value: Row[string] | undefined): number | undefined {
  return value == null ? undefined : Number(value);
}

function textOf(value: Row[string] | undefined): string | undefined {
  return value == null ? undefined : String(value);
}

function jsonOf(value: Row[string] | undefined): unknown {
  return value == null ? null : JSON.parse(String(value));
}
