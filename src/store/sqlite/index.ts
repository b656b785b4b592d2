import { rmSync } from 'node:fs';
import type { Clock } from '../../kernel/clock.ts';
import { type Store, StoreError } from '../contracts.ts';
import { Database, identityOf } from './database.ts';
import { sqliteDocuments } from './documents.ts';
import { SqliteLedger } from './ledger.ts';
import { sqliteRegistry } from './registry.ts';
import { sqliteKeys, sqliteOverlays, sqliteSnapshots } from './settings.ts';

/** How often the files are looked for under their names. */
const LOOK_MS = 1000;
/** Events that are carried over into a new file when the old one was removed: no more than a fraction of a second takes. */
const RESCUED_EVENTS_MAX = 10_000;

export interface SqliteOptions {
  path: string;
  clock: Clock;
  /** Told, in words, when the file was removed or replaced while it was open, and what became of its content. */
  onLoss?: (what: string) => void;
}

/**
 * Opens (or makes) the file at `path`; throws a StoreError where it cannot. A file that is removed while it is open is
 * made anew: its keys, overlays, snapshots, documents, versions of models and newest events are carried over from what is still open.
 */
export function sqliteStore(options: SqliteOptions): Store {
  // Opening the file commits already, before there is a store.
  let store: Store | undefined;
  const file = new OpenFile(options, () => store?.onStored?.());
  const database = () => file.database();
  store = {
    ledger: new SqliteLedger(database, options.clock),
    keys: sqliteKeys(database),
    overlays: sqliteOverlays(database),
    snapshots: sqliteSnapshots(database),
    documents: sqliteDocuments(database),
    registry: sqliteRegistry(database),
    onStored: undefined,
    async close() {
      file.close();
    },
  };
  return store;
}

/** Keeps a database open whatever happens to its file. */
class OpenFile {
  readonly #options: SqliteOptions;
  readonly #onCommit: () => void;
  #database: Database | undefined;
  #lookedMs: number;
  #closed = false;

  constructor(options: SqliteOptions, onCommit: () => void) {
    this.#options = options;
    this.#onCommit = onCommit;
    this.#lookedMs = options.clock.mono();
    this.#database = new Database(options.path, onCommit);
  }

  database(): Database {
    if (this.#closed) throw new StoreError('closed', 'the store is closed');
    const now = this.#options.clock.mono();
    const open = this.#database;
    if (open && now - this.#lookedMs < LOOK_MS) return open;
    this.#lookedMs = now;
    if (open?.inPlace && !open.suspect) return open;
    const { path } = this.#options;
    if (open && identityOf(path) !== open.file) return (this.#database = this.#replace(open));
    // The log was removed, or a call failed: closing folds what is in the log into the file.
    open?.close();
    this.#database = undefined;
    return (this.#database = new Database(path, this.#onCommit));
  }

  #replace(old: Database): Database {
    const { path, onLoss } = this.#options;
    const another = identityOf(path) !== undefined;
    const fresh = new Database(path, this.#onCommit);
    const lost = another ? count(old) : rescue(old, fresh);
    old.close();
    onLoss?.(
      another
        ? `${path} was replaced by another file; the ${lost} events of the old one are gone`
        : `${path} was removed and made anew; keys, settings and the newest events were carried over, ${lost} older events are lost`,
    );
    return fresh;
  }

  close(): void {
    this.#closed = true;
    this.#database?.close();
  }
}

function count(database: Database): number {
  return Number(database.get('SELECT count(*) AS count FROM events')!.count);
}

/** Copies what the removed file still tells into the new one; gives the number of events left behind. */
function rescue(old: Database, fresh: Database): number {
  try {
    old.run('ATTACH DATABASE ? AS fresh', fresh.path);
    old.transaction(() => copy(old), { durable: true });
    old.exec('DETACH DATABASE fresh');
  } catch (error) {
    // What was not carried over must not pass for the whole: the next call tries again.
    fresh.close();
    for (const file of [fresh.path, `${fresh.path}-wal`, `${fresh.path}-shm`]) rmSync(file, { force: true });
    throw error;
  }
  return count(old) - count(fresh);
}

/** Whatever refers to another follows it. */
const CARRIED = [
  'settings',
  'snapshots',
  'keys',
  'overlays',
  'documents',
  'batches',
  'registry_models',
  'registry_artifacts',
  'registry_versions',
  'registry_files',
  'registry_aliases',
  'registry_alias_moves',
];

function copy(old: Database): void {
  for (const table of CARRIED) old.exec(`INSERT INTO fresh.${table} SELECT * FROM main.${table}`);
  old.exec(
    `INSERT INTO fresh.events SELECT * FROM main.events
     WHERE id IN (SELECT event FROM main.snapshots)
       OR position IN (SELECT position FROM main.events ORDER BY position DESC LIMIT ${RESCUED_EVENTS_MAX})
     ORDER BY position`,
  );
}
