import type { LedgerEvent } from '../../events/contracts.ts';
import { assert } from '../../kernel/assert.ts';
import type { Clock } from '../../kernel/clock.ts';
import { idTime } from '../../kernel/ids.ts';
import {
  type Batch,
  EVENTS_PAGE_MAX,
  type EventQuery,
  type Keep,
  type Ledger,
  type StoredEvent,
} from '../contracts.ts';
import { indexed } from '../indexed.ts';
import type { Database, Row } from './database.ts';
import { giveBack, usedBytes } from './extent.ts';

/** A worker that has stored nothing for so long is gone: the numbers of its batches are forgotten. */
const BOOT_KEPT_MS = 7 * 24 * 3600 * 1000;

const COLUMNS = 'position, id, at_ms, type, subject, actor, causes, data';

export class SqliteLedger implements Ledger {
  readonly #database: () => Database;
  readonly #clock: Clock;

  constructor(database: () => Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async storeBatches(batches: readonly Batch[]): Promise<boolean[]> {
    const database = this.#database();
    const now = this.#clock.wall();
    return database.transaction(() =>
      batches.map(({ boot, sequence, events }) => {
        const fresh = claim(database, boot, sequence, now);
        if (fresh) insert(database, events);
        return fresh;
      }),
    );
  }

  async append(events: readonly LedgerEvent[]): Promise<void> {
    const database = this.#database();
    database.transaction(() => insert(database, events));
  }

  async event(id: string): Promise<StoredEvent | undefined> {
    const row = this.#database().get(`SELECT ${COLUMNS} FROM events WHERE id = ?`, id);
    return row && read(row);
  }

  async events({ type, subject, order, after, limit }: EventQuery): Promise<StoredEvent[]> {
    assert(limit >= 1 && limit <= EVENTS_PAGE_MAX, `a page has 1 to ${EVENTS_PAGE_MAX} events`);
    const conditions: string[] = [];
    const values: (string | number)[] = [];
    const narrow = (condition: string, value: string | number | undefined) => {
      if (value === undefined) return;
      conditions.push(condition);
      values.push(value);
    };
    narrow('type = ?', type);
    narrow('subject = ?', subject);
    narrow(order === 'asc' ? 'position > ?' : 'position < ?', after);
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    const rows = this.#database().all(
      `SELECT ${COLUMNS} FROM events ${where} ORDER BY position ${order === 'asc' ? 'ASC' : 'DESC'} LIMIT ?`,
      ...values,
      limit,
    );
    return rows.map(read);
  }

  async position(id: string): Promise<number | undefined> {
    const database = this.#database();
    const row = database.get('SELECT position FROM events WHERE id = ?', id);
    if (row) return Number(row.position);
    const madeMs = idTime(id);
    if (madeMs === undefined) return undefined;
    const before = database.get(
      'SELECT position FROM events WHERE at_ms <= ? ORDER BY at_ms DESC, position DESC LIMIT 1',
      madeMs,
    );
    return Number(before?.position ?? 0);
  }

  async head(): Promise<number> {
    const row = this.#database().get('SELECT max(position) AS position FROM events');
    return Number(row?.position ?? 0);
  }

  async requests(requestId: string, limit: number): Promise<StoredEvent[]> {
    const rows = this.#database().all(
      `SELECT ${COLUMNS} FROM events WHERE request_id = ? ORDER BY position DESC LIMIT ?`,
      requestId,
      limit,
    );
    return rows.map(read);
  }

  async groups(second: number, limit: number): Promise<StoredEvent[]> {
    const rows = this.#database().all(
      `SELECT ${COLUMNS} FROM events WHERE second = ? ORDER BY position LIMIT ?`,
      second,
      limit,
    );
    return rows.map(read);
  }

  async trim(keep: Keep, limit: number): Promise<{ removed: number; more: boolean }> {
    const database = this.#database();
    const removed = database.transaction(() => {
      let count = removeOldest(database, 'at_ms < ?', 'at_ms', keep.since, limit);
      if (count < limit && usedBytes(database) > keep.bytesMax) {
        count += removeOldest(database, '?', 'position', 1, limit - count);
      }
      removeSnapshots(database, keep.since);
      database.run('DELETE FROM batches WHERE stored_ms < ?', this.#clock.wall() - BOOT_KEPT_MS);
      return count;
    });
    giveBack(database);
    return { removed, more: removed === limit };
  }

  async extent(): Promise<{ bytes: number; events: number; oldestMs: number | undefined }> {
    const database = this.#database();
    const row = database.get(
      'SELECT (SELECT count(*) FROM events) AS events, (SELECT min(at_ms) FROM events) AS oldest',
    );
    return {
      bytes: usedBytes(database),
      events: Number(row?.events ?? 0),
      oldestMs: row?.oldest == null ? undefined : Number(row.oldest),
    };
  }
}

/** Adds events within the transaction of the caller. */
export function insert(database: Database, events: readonly LedgerEvent[]): void {
  for (const event of events) {
    const { requestId, second, snapshot } = indexed(event);
    database.run(
      `INSERT INTO events (id, at_ms, type, subject, actor, causes, data, request_id, second, snapshot)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
      event.id,
      Date.parse(event.at),
      event.type,
      event.subject,
      event.actor,
      JSON.stringify(event.causes),
      JSON.stringify(event.data),
      requestId ?? null,
      second ?? null,
      snapshot ?? null,
    );
  }
}

function read(row: Row): StoredEvent {
  return {
    position: Number(row.position),
    event: {
      id: String(row.id),
      at: new Date(Number(row.at_ms)).toISOString(),
      type: String(row.type),
      subject: String(row.subject),
      actor: String(row.actor),
      causes: JSON.parse(String(row.causes)) as string[],
      data: JSON.parse(String(row.data)) as Record<string, unknown>,
    },
  };
}

/** Marks a batch as stored, joining the ranges beside it; false where it was marked before. */
function claim(database: Database, boot: string, sequence: number, nowMs: number): boolean {
  const before = database.get(
    'SELECT first, last FROM batches WHERE boot = ? AND first <= ? ORDER BY first DESC LIMIT 1',
    boot,
    sequence,
  );
  if (before && Number(before.last) >= sequence) return false;
  const after = database.get(
    'SELECT first, last FROM batches WHERE boot = ? AND first = ?',
    boot,
    sequence + 1,
  );
  const first = before && Number(before.last) === sequence - 1 ? Number(before.first) : sequence;
  const last = after ? Number(after.last) : sequence;
  if (after) database.run('DELETE FROM batches WHERE boot = ? AND first = ?', boot, sequence + 1);
  database.run(
    `INSERT INTO batches (boot, first, last, stored_ms) VALUES (?, ?, ?, ?)
     ON CONFLICT (boot, first) DO UPDATE SET last = excluded.last, stored_ms = excluded.stored_ms`,
    boot,
    first,
    last,
    nowMs,
  );
  return true;
}

/** What published a snapshot that is kept stays, so that no chain of causes ends in the air. */
function removeOldest(db: Database, condition: string, order: string, value: number, limit: number): number {
  return db.run(
    `DELETE FROM events WHERE position IN (
       SELECT position FROM events WHERE ${condition} AND id NOT IN (SELECT event FROM snapshots)
       ORDER BY ${order} LIMIT ?)`,
    value,
    limit,
  );
}

function removeSnapshots(database: Database, sinceMs: number): void {
  const removed = database.run(
    `DELETE FROM snapshots WHERE at < ? AND number < (SELECT max(number) FROM snapshots)
       AND number < coalesce((SELECT min(snapshot) FROM events WHERE snapshot IS NOT NULL), number + 1)`,
    new Date(sinceMs).toISOString(),
  );
  if (removed > 0) database.run('DELETE FROM settings WHERE id NOT IN (SELECT settings FROM snapshots)');
}
