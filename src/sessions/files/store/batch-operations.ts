import { StoreError } from '../../../store/contracts.ts';
import type { Database } from '../../../store/sqlite/database.ts';
import { giveBack } from '../../../store/sqlite/extent.ts';
import { fileOperations, insertFile, type Listed, type Page, pageOf, placeOf } from './file-operations.ts';
import {
  type BatchFault,
  type EndStatus,
  OPEN,
  readBatch,
  type StoredBatch,
  type StoredFile,
} from './rows.ts';

/** A claim on a batch: what is done under one that is no more changes nothing, and rejects as `conflict`. */
export interface Claim {
  id: string;
  seq: number;
  boot: string;
  epoch: number;
}

/** What is known of a batch before it is kept. */
type NewBatch = Omit<
  StoredBatch,
  | 'seq'
  | 'status'
  | 'errors'
  | 'total'
  | 'completed'
  | 'failed'
  | 'outputFile'
  | 'errorFile'
  | 'since'
  | 'epoch'
>;

export interface LineResult {
  /** From 0. */
  line: number;
  failed: boolean;
  /** As it stands in the file, without its end of line. */
  text: string;
}

function batchOf(database: Database, id: string): StoredBatch {
  return readBatch(database.get('SELECT * FROM batches WHERE id = ?', id)!);
}

/** The batch, where the claim holds. */
function held(database: Database, { id, boot, epoch }: Claim): StoredBatch {
  const sql = 'SELECT * FROM batches WHERE id = ? AND owner = ? AND epoch = ?';
  const row = database.get(sql, id, boot, epoch);
  if (!row) throw new StoreError('conflict', `another worker runs ${id}`);
  return readBatch(row);
}

function find(database: Database, { id, tenant }: { id: string; tenant: string }): StoredBatch | undefined {
  const row = database.get('SELECT * FROM batches WHERE id = ? AND tenant = ?', id, tenant);
  return row && readBatch(row);
}

/** Refuses what is over a bound, and a file that is gone or of another purpose; then nothing is kept. */
function addBatch(
  database: Database,
  {
    batch,
    tenantOpenMax,
  }: {
    batch: NewBatch;
    tenantOpenMax: number;
  },
): StoredBatch | 'no-file' | 'other-purpose' | 'empty-file' | 'too-many' {
  const { inputFile, tenant, createdMs } = batch;
  const file = fileOperations.file(database, { id: inputFile, tenant, nowMs: createdMs });
  if (!file) return 'no-file';
  if (file.purpose !== 'batch') return 'other-purpose';
  if (file.bytes === 0) return 'empty-file';
  const open = database.get(
    `SELECT count(*) AS count FROM batches WHERE tenant = ? AND status IN ${OPEN}`,
    tenant,
  )!;
  if (Number(open['count']) >= tenantOpenMax) return 'too-many';
  database.run(
    `INSERT INTO batches (id, tenant, endpoint, input_file, completion_window, metadata, output_kept_ms,
       status, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, 'validating', ?, ?)`,
    batch.id,
    tenant,
    batch.endpoint,
    inputFile,
    batch.completionWindow,
    batch.metadata && JSON.stringify(batch.metadata),
    batch.outputKeptMs ?? null,
    createdMs,
    batch.expiresMs,
  );
  return batchOf(database, batch.id);
}

function batches(database: Database, { tenant, limit, after }: Omit<Page, 'order'>): Listed<StoredBatch> {
  const from = after === undefined ? undefined : placeOf(database, 'batches', after, tenant);
  if (after !== undefined && from === undefined) return undefined;
  const rows = database.all(
    'SELECT * FROM batches WHERE tenant = ? AND seq < ? ORDER BY seq DESC LIMIT ?',
    tenant,
    from ?? Number.MAX_SAFE_INTEGER,
    limit + 1,
  );
  return pageOf(rows, limit, readBatch);
}

/** Whoever runs it sees it at the next look. One that is over is given as it is; so is one that ends already. */
function cancelBatch(
  database: Database,
  {
    id,
    tenant,
    nowMs,
  }: {
    id: string;
    tenant: string;
    nowMs: number;
  },
): StoredBatch | undefined {
  database.run(
    `UPDATE batches SET status = 'cancelling', cancelling_ms = ?
     WHERE id = ? AND tenant = ? AND status IN ('validating', 'in_progress')`,
    nowMs,
    id,
    tenant,
  );
  return find(database, { id, tenant });
}

/** Its file has been read whole: so many lines are to be asked, or none for what is wrong with it. */
function begin(
  database: Database,
  { claim, total, nowMs }: { claim: Claim; total: number; nowMs: number },
): StoredBatch {
  if (held(database, claim).status === 'validating') {
    database.run(
      "UPDATE batches SET status = 'in_progress', in_progress_ms = ?, total = ? WHERE id = ?",
      nowMs,
      total,
      claim.id,
    );
  }
  return batchOf(database, claim.id);
}

function refuseBatch(
  database: Database,
  {
    claim,
    errors,
    nowMs,
  }: {
    claim: Claim;
    errors: BatchFault[];
    nowMs: number;
  },
): StoredBatch {
  held(database, claim);
  database.run(
    "UPDATE batches SET status = 'failed', failed_ms = ?, errors = ?, owner = NULL WHERE id = ?",
    nowMs,
    JSON.stringify(errors),
    claim.id,
  );
  return batchOf(database, claim.id);
}

/** Keeps what became of a line, and counts it. A line that is kept already is neither kept nor counted again. */
function keepResult(database: Database, { claim, result }: { claim: Claim; result: LineResult }): void {
  const { line, failed, text } = result;
  const changed = database.run(
    `INSERT INTO results (batch, line, failed, text)
     SELECT seq, ?, ?, ? FROM batches WHERE id = ? AND owner = ? AND epoch = ?
     ON CONFLICT (batch, line) DO NOTHING`,
    line,
    Number(failed),
    text,
    claim.id,
    claim.boot,
    claim.epoch,
  );
  if (changed === 0) {
    held(database, claim);
    return;
  }
  const counter = failed ? 'failed' : 'completed';
  database.run(`UPDATE batches SET ${counter} = ${counter} + 1, has_results = 1 WHERE seq = ?`, claim.seq);
}

/** Lines whose result is kept, above `after`, in order. */
function done(
  database: Database,
  { seq, after, limit }: { seq: number; after: number; limit: number },
): number[] {
  return database
    .all('SELECT line FROM results WHERE batch = ? AND line > ? ORDER BY line LIMIT ?', seq, after, limit)
    .map((row) => Number(row['line']));
}

/** Results of one kind, above `after`, in order, of `bytesMax` together or a little more. */
function results(
  database: Database,
  {
    seq,
    failed,
    after,
    bytesMax,
  }: {
    seq: number;
    failed: boolean;
    after: number;
    bytesMax: number;
  },
): { line: number; text: string }[] {
  const found: { line: number; text: string }[] = [];
  let bytes = 0;
  let last = after;
  while (bytes < bytesMax) {
    const row = database.get(
      'SELECT line, text FROM results WHERE batch = ? AND line > ? AND failed = ? ORDER BY line LIMIT 1',
      seq,
      last,
      Number(failed),
    );
    if (!row) break;
    last = Number(row['line']);
    const text = String(row['text']);
    bytes += text.length;
    found.push({ line: last, text });
  }
  return found;
}

/** All lines that will be asked have been: its files are being written. One that is being cancelled stays so. */
function finalize(database: Database, { claim, nowMs }: { claim: Claim; nowMs: number }): StoredBatch {
  held(database, claim);
  database.run(
    `UPDATE batches SET finalizing_ms = coalesce(finalizing_ms, ?),
       status = CASE status WHEN 'in_progress' THEN 'finalizing' ELSE status END WHERE id = ?`,
    nowMs,
    claim.id,
  );
  return batchOf(database, claim.id);
}

/** It is over, and its files are there. */
function end(
  database: Database,
  {
    claim,
    status,
    output,
    errors,
    nowMs,
  }: {
    claim: Claim;
    status: Exclude<EndStatus, 'failed'>;
    output: StoredFile | undefined;
    errors: StoredFile | undefined;
    nowMs: number;
  },
): StoredBatch {
  held(database, claim);
  for (const file of [output, errors]) if (file) insertFile(database, file);
  database.run(
    `UPDATE batches SET status = ?, ${status}_ms = ?, output_file = ?, error_file = ?, owner = NULL WHERE id = ?`,
    status,
    nowMs,
    output?.id ?? null,
    errors?.id ?? null,
    claim.id,
  );
  return batchOf(database, claim.id);
}

/** Removes up to `limit` results that stand in files by now; whether more may be due. */
function sweep(database: Database, { limit }: { limit: number }): boolean {
  const row = database.get(`SELECT seq FROM batches WHERE has_results = 1 AND status NOT IN ${OPEN} LIMIT 1`);
  if (!row) return false;
  const seq = Number(row['seq']);
  const removed = database.run(
    'DELETE FROM results WHERE rowid IN (SELECT rowid FROM results WHERE batch = ? LIMIT ?)',
    seq,
    limit,
  );
  if (removed < limit) database.run('UPDATE batches SET has_results = 0 WHERE seq = ?', seq);
  giveBack(database);
  return true;
}

/** Removes up to `limit` batches that were over before `beforeMs`. */
function forget(database: Database, { limit, beforeMs }: { limit: number; beforeMs: number }): void {
  database.run(
    `DELETE FROM batches WHERE seq IN (SELECT seq FROM batches
       WHERE coalesce(completed_ms, failed_ms, expired_ms, cancelled_ms) < ? AND has_results = 0 LIMIT ?)`,
    beforeMs,
    limit,
  );
}

/** Lets others run it. */
function release(database: Database, { claim }: { claim: Claim }): void {
  database.run(
    'UPDATE batches SET owner = NULL WHERE id = ? AND owner = ? AND epoch = ?',
    claim.id,
    claim.boot,
    claim.epoch,
  );
}

export const batchOperations = {
  addBatch,
  batches,
  cancelBatch,
  begin,
  refuseBatch,
  keepResult,
  done,
  results,
  finalize,
  end,
  sweep,
  forget,
  release,
  batch: find,
};
