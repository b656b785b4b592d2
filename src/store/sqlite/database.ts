import { closeSync, openSync, statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { StoreError, type StoreTrouble } from '../contracts.ts';
import { type Migration, migrations } from '../migrations/index.ts';

/** How long another process may hold the file before opening it gives up. */
const OPENING_MS = 1000;
/** The same for every call that follows: nothing else is done meanwhile, and whoever calls may try again. */
const BUSY_MS = 100;
/**
 * The log before the file (WAL) is folded into it every so many pages (4 KiB), and cut back to so many bytes. Folding
 * holds up what else this process does: 1 MiB takes about 10 ms, where SQLite's own 1000 pages take 50.
 */
const CHECKPOINT_PAGES = 250;
const JOURNAL_BYTES_MAX = 16 * 1024 * 1024;

/** The path of a database that is in no file. */
export const IN_MEMORY = ':memory:';

export type Row = Record<string, string | number | null>;

export interface DatabaseOptions {
  /** Its tables; the ledger's where nothing is said. */
  migrations?: readonly Migration[];
  /** Every transaction is on the disk before it returns, not only those that ask for it. */
  durable?: boolean;
  /** How long a call waits for another process that holds the file, milliseconds. */
  busyMs?: number;
  /** The log is folded into the file every so many pages: seldom, where nothing but the disk is held up by it. */
  checkpointPages?: number;
  /** What is removed is overwritten, so that it cannot be read out of the file. */
  erases?: boolean;
}

/**
 * One open SQLite file: prepared statements, transactions, and errors as StoreErrors.
 *
 * Commits reach the operating system at once (a process may be killed and loses nothing) and the disk with the next
 * checkpoint (WAL, synchronous NORMAL: a machine that loses power may lose the last moments, never the file). A
 * transaction that is `durable` is on the disk before it returns (synchronous FULL).
 */
export class Database {
  readonly path: string;
  /** What the file is known by, whatever its name; see identityOf. */
  readonly file: string | undefined;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #files: string;
  readonly #onCommit: () => void;
  readonly #options: DatabaseOptions;
  #suspect = false;

  /** Opens the file, makes it where there is none, and brings its tables up to date. `onCommit` follows each transaction. */
  constructor(path: string, onCommit: () => void, options: DatabaseOptions = {}) {
    this.path = path;
    this.#onCommit = onCommit;
    this.#options = options;
    this.#db = guard(() => {
      makeForOwner(path);
      return new DatabaseSync(path, { timeout: OPENING_MS });
    });
    try {
      guard(() => this.#prepare());
      this.file = identityOf(path);
      this.#files = identity(path);
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  #prepare(): void {
    const { migrations: tables = migrations, durable, busyMs = BUSY_MS, erases } = this.#options;
    const { checkpointPages = CHECKPOINT_PAGES } = this.#options;
    // Before the first table: pages that retention frees can be given back to the disk in small steps.
    this.#db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    this.#db.exec('PRAGMA journal_mode = WAL');
    this.#db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'NORMAL'}`);
    if (erases) this.#db.exec('PRAGMA secure_delete = ON');
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
    this.#db.exec(`PRAGMA journal_size_limit = ${JOURNAL_BYTES_MAX}`);
    this.#db.exec('PRAGMA foreign_keys = ON');
    this.#migrate(tables);
    this.#db.exec(`PRAGMA busy_timeout = ${busyMs}`);
  }

  #migrate(migrations: readonly Migration[]): void {
    const newest = migrations.at(-1)!.number;
    const at = () => Number((this.#db.prepare('PRAGMA user_version').get() as Row).user_version);
    if (at() > newest) {
      throw new StoreError(
        'failed',
        `${this.path} was written by a newer Armature (tables ${at()}, known ${newest})`,
      );
    }
    for (const { number, sql } of migrations) {
      if (at() >= number) continue;
      this.transaction(() => {
        // Another process may have come first while this one waited for the file.
        if (at() >= number) return;
        this.#db.exec(sql);
        this.#db.exec(`PRAGMA user_version = ${number}`);
      });
    }
  }

  /** Runs `work` as one transaction: all of it is stored, or nothing. */
  transaction<Result>(work: () => Result, { durable = false } = {}): Result {
    return this.#guard(() => {
      if (durable) this.#db.exec('PRAGMA synchronous = FULL');
      try {
        this.#db.exec('BEGIN IMMEDIATE');
        try {
          const result = work();
          this.#db.exec('COMMIT');
          this.#onCommit();
          return result;
        } catch (error) {
          // A full disk may have rolled back already.
          if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
          throw error;
        }
      } finally {
        if (durable) this.#db.exec('PRAGMA synchronous = NORMAL');
      }
    });
  }

  /** Runs `work` within a transaction that is open: should it throw, what it changed is undone, and nothing else. */
  savepoint<Result>(work: () => Result): Result {
    this.exec('SAVEPOINT one');
    try {
      const result = work();
      this.exec('RELEASE one');
      return result;
    } catch (error) {
      // A full disk may have rolled back the whole transaction.
      if (this.#db.isTransaction) this.exec('ROLLBACK TO one; RELEASE one');
      throw error;
    }
  }

  /** Whether a transaction is open. */
  get isTransaction(): boolean {
    return this.#db.isTransaction;
  }

  /** Runs `work`, which changes nothing, on one state of the file. */
  reading<Result>(work: () => Result): Result {
    return this.#guard(() => {
      this.#db.exec('BEGIN');
      try {
        return work();
      } finally {
        if (this.#db.isTransaction) this.#db.exec('COMMIT');
      }
    });
  }

  /** The number of rows that were changed. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return this.#guard(() => Number(this.#statement(sql).run(...values).changes));
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#guard(() => this.#statement(sql).get(...values) as Row | undefined);
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#guard(() => this.#statement(sql).all(...values) as Row[]);
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** Whether the files that are open are still the ones that their names lead to. */
  get inPlace(): boolean {
    return identity(this.path) === this.#files;
  }

  /** Whether a call has failed in a way that opening the file anew may mend. */
  get suspect(): boolean {
    return this.#suspect;
  }

  /** Runs statements that give no rows and take no values. */
  exec(sql: string): void {
    this.#guard(() => this.#db.exec(sql));
  }

  #guard<Result>(work: () => Result): Result {
    try {
      return guard(work);
    } catch (error) {
      if (error instanceof StoreError) this.#suspect ||= MENDED_BY_OPENING.has(error.trouble);
      throw error;
    }
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}

/** For its owner alone, where it is not there yet; SQLite gives the files beside it the same mode. */
function makeForOwner(path: string): void {
  if (path === IN_MEMORY) return;
  try {
    closeSync(openSync(path, 'a', 0o600));
  } catch (error) {
    throw new StoreError(openTrouble(error as NodeJS.ErrnoException), (error as Error).message, {
      cause: error,
    });
  }
}

function openTrouble({ code }: NodeJS.ErrnoException): StoreTrouble {
  if (code === 'ENOSPC') return 'full';
  return code === 'EROFS' || code === 'EACCES' || code === 'EPERM' ? 'read-only' : 'gone';
}

/** Device and inode of the database and the files beside it: with one gone, what is written is lost with the process. */
function identity(path: string): string {
  return [path, `${path}-wal`, `${path}-shm`].map(identityOf).join(' ');
}

/** Undefined where there is no such file. */
export function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}

// SQLite's result codes, https://www.sqlite.org/rescode.html; the low byte tells the kind.
const TROUBLES: Record<number, StoreTrouble> = {
  5: 'busy',
  6: 'busy',
  8: 'read-only',
  11: 'corrupt',
  13: 'full',
  14: 'gone',
  19: 'conflict',
  26: 'corrupt',
};
/** A file that was read-only when it was opened stays so until it is opened again. */
const MENDED_BY_OPENING: ReadonlySet<StoreTrouble> = new Set(['read-only', 'gone', 'corrupt', 'failed']);
const READONLY_DBMOVED = 1032;

/** Runs `work`; whatever SQLite throws comes out as a StoreError. */
function guard<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    const { errcode, message } = error as { errcode?: number; message: string };
    if (errcode === undefined) {
      if (/database is not open/.test(message))
        throw new StoreError('closed', 'the store is closed', { cause: error });
      throw error;
    }
    const trouble = errcode === READONLY_DBMOVED ? 'gone' : (TROUBLES[errcode & 0xff] ?? 'failed');
    throw new StoreError(trouble, message, { cause: error });
  }
}
