import type { Database, Row } from '../../../store/sqlite/database.ts';
import { OPEN, readFile, type StoredFile } from './rows.ts';

/** Not one whose time is over: from then on it is as if it had never been. */
const LIVES = '(expires_ms IS NULL OR expires_ms > ?)';
const IN_USE = `EXISTS (SELECT 1 FROM batches WHERE input_file = files.id AND status IN ${OPEN})`;

export interface FileBounds {
  tenantBytesMax: number;
  totalBytesMax: number;
  tenantFilesMax: number;
}

export interface Page {
  tenant: string;
  /** 1 or more. */
  limit: number;
  order: 'asc' | 'desc';
  /** The id that it follows. */
  after: string | undefined;
}

/** What a list gives: undefined where there is nothing with the id that it is to follow. */
export type Listed<Item> = { items: Item[]; more: boolean } | undefined;

/** Says which bound is in the way, where one is; then nothing is kept. */
function addFile(
  database: Database,
  {
    file,
    bounds,
  }: {
    file: StoredFile;
    bounds: FileBounds;
  },
): 'added' | 'tenant-full' | 'disk-full' {
  const own = database.get(
    'SELECT count(*) AS files, coalesce(sum(bytes), 0) AS bytes FROM files WHERE tenant = ?',
    file.tenant,
  )!;
  if (
    Number(own['files']) >= bounds.tenantFilesMax ||
    Number(own['bytes']) + file.bytes > bounds.tenantBytesMax
  )
    return 'tenant-full';
  const all = Number(database.get('SELECT coalesce(sum(bytes), 0) AS bytes FROM files')!['bytes']);
  if (all + file.bytes > bounds.totalBytesMax) return 'disk-full';
  insertFile(database, file);
  return 'added';
}

function file(
  database: Database,
  { id, tenant, nowMs }: { id: string; tenant: string; nowMs: number },
): StoredFile | undefined {
  const row = database.get(`SELECT * FROM files WHERE id = ? AND tenant = ? AND ${LIVES}`, id, tenant, nowMs);
  return row && readFile(row);
}

function files(
  database: Database,
  { tenant, purpose, limit, order, after, nowMs }: Page & { purpose: string | undefined; nowMs: number },
): Listed<StoredFile> {
  const from = after === undefined ? undefined : placeOf(database, 'files', after, tenant);
  if (after !== undefined && from === undefined) return undefined;
  const rows = database.all(
    `SELECT * FROM files WHERE tenant = ? AND ${LIVES} AND (? IS NULL OR purpose = ?)
     AND ${order === 'asc' ? 'seq > ?' : 'seq < ?'} ORDER BY seq ${order === 'asc' ? 'ASC' : 'DESC'} LIMIT ?`,
    tenant,
    nowMs,
    purpose ?? null,
    purpose ?? null,
    from ?? (order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER),
    limit + 1,
  );
  return pageOf(rows, limit, readFile);
}

function removeFile(
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
): 'removed' | 'in-use' | 'unknown' {
  const row = database.get(
    `SELECT ${IN_USE} AS used FROM files WHERE id = ? AND tenant = ? AND ${LIVES}`,
    id,
    tenant,
    nowMs,
  );
  if (!row) return 'unknown';
  if (Number(row['used']) === 1) return 'in-use';
  database.run('DELETE FROM files WHERE id = ?', id);
  return 'removed';
}

/** Removes files whose time is over, save those that a batch still reads; gives their ids. */
function removeExpired(database: Database, { nowMs, limit }: { nowMs: number; limit: number }): string[] {
  return database
    .all(
      `DELETE FROM files WHERE seq IN
         (SELECT seq FROM files WHERE expires_ms <= ? AND NOT ${IN_USE} LIMIT ?) RETURNING id`,
      nowMs,
      limit,
    )
    .map((row) => String(row['id']));
}

/** Those of the ids that are files. */
function known(database: Database, { ids }: { ids: string[] }): string[] {
  return database
    .all('SELECT id FROM files WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids))
    .map((row) => String(row['id']));
}

export const fileOperations = { addFile, file, files, removeFile, removeExpired, known };

export function insertFile(database: Database, file: StoredFile): void {
  database.run(
    'INSERT INTO files (id, tenant, purpose, filename, bytes, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?)',
    file.id,
    file.tenant,
    file.purpose,
    file.filename,
    file.bytes,
    file.createdMs,
    file.expiresMs ?? null,
  );
}

export function placeOf(
  database: Database,
  table: 'files' | 'batches',
  id: string,
  tenant: string,
): number | undefined {
  const row = database.get(`SELECT seq FROM ${table} WHERE id = ? AND tenant = ?`, id, tenant);
  return row && Number(row['seq']);
}

export function pageOf<Item>(
  rows: readonly Row[],
  limit: number,
  read: (row: Row) => Item,
): { items: Item[]; more: boolean } {
  return { items: rows.slice(0, limit).map(read), more: rows.length > limit };
}
