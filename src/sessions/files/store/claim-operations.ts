import type { Database } from '../../../store/sqlite/database.ts';
import { OPEN, type OpenStatus, readBatch, type StoredBatch } from './rows.ts';

export interface Look {
  /** Workers that have run batches, this one included. */
  workers: { boot: string; pid: number; beat: number }[];
  /** The batches that the worker runs, by what it is known to hold. */
  mine: { id: string; epoch: number; status: OpenStatus }[];
  /** Nobody runs them. */
  free: number;
  open: Record<OpenStatus, number>;
}

/** How things stand, for the worker of that boot. */
function look(database: Database, { boot }: { boot: string }): Look {
  const open: Look['open'] = { validating: 0, in_progress: 0, finalizing: 0, cancelling: 0 };
  const mine: Look['mine'] = [];
  let free = 0;
  for (const row of database.all(`SELECT id, status, owner, epoch FROM batches WHERE status IN ${OPEN}`)) {
    const status = String(row['status']) as OpenStatus;
    open[status]++;
    if (row['owner'] == null) free++;
    else if (row['owner'] === boot) mine.push({ id: String(row['id']), epoch: Number(row['epoch']), status });
  }
  const workers = database.all('SELECT boot, pid, beat FROM workers').map((row) => ({
    boot: String(row['boot']),
    pid: Number(row['pid']),
    beat: Number(row['beat']),
  }));
  return { workers, mine, free, open };
}

/** Says that the worker lives. */
function beat(database: Database, { boot, pid }: { boot: string; pid: number }): void {
  database.run(
    'INSERT INTO workers (boot, pid, beat) VALUES (?, ?, 1) ON CONFLICT (boot) DO UPDATE SET beat = beat + 1',
    boot,
    pid,
  );
}

/** What workers ran that are no more is free from now on; so is what nobody is known to run. */
function bury(database: Database, { boots }: { boots: string[] }): void {
  database.run('DELETE FROM workers WHERE boot IN (SELECT value FROM json_each(?))', JSON.stringify(boots));
  database.run(
    `UPDATE batches SET owner = NULL
     WHERE status IN ${OPEN} AND owner IS NOT NULL AND owner NOT IN (SELECT boot FROM workers)`,
  );
}

/**
 * The batch that the worker is to run next, the oldest of the tenant of whom the fewest run; undefined where none is free.
 * The worker must have said that it lives.
 */
function claim(database: Database, { boot }: { boot: string }): StoredBatch | undefined {
  const row = database.get(
    `UPDATE batches SET owner = ?, epoch = epoch + 1 WHERE seq = (
       SELECT seq FROM batches AS free WHERE status IN ${OPEN} AND owner IS NULL
       ORDER BY (SELECT count(*) FROM batches AS held WHERE held.status IN ${OPEN}
         AND held.owner IS NOT NULL AND held.tenant = free.tenant), seq LIMIT 1)
     RETURNING *`,
    boot,
  );
  return row && readBatch(row);
}

export const claimOperations = { look, beat, bury, claim };
