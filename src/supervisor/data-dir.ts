import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { LAST_GOOD_FILE } from '../config/last-good.ts';
import { isAlive } from '../kernel/alive.ts';
import type { RunningPart } from './supervisor.ts';

/** SQLITE_BUSY: another process holds the lock. */
const BUSY = 5;

/** Where callers and operators reach a running Armature. */
export interface Addresses {
  gateway: string;
  admin: string;
}

/** What a supervisor leaves in `DATA/run/supervisor.json`, for those who ask and for the one that follows it. */
export interface SupervisorRecord extends Partial<Addresses> {
  pid: number;
  /** ISO 8601. */
  since: string;
  parts: RunningPart[];
}

export type Taking = { taken: true; dir: DataDir } | { taken: false; holder: SupervisorRecord | undefined };

/**
 * A data directory that this process holds. The lock is an exclusive transaction of SQLite that is never ended: the kernel
 * releases it when the process dies, however that happens.
 */
export class DataDir {
  /** Parts of an earlier supervisor, which died without ending them, that are still alive. */
  readonly earlier: RunningPart[];
  readonly #run: string;
  readonly #lock: DatabaseSync;

  private constructor(run: string, lock: DatabaseSync, earlier: RunningPart[]) {
    this.#run = run;
    this.#lock = lock;
    this.earlier = earlier;
  }

  /** Makes the directory where it is not there, for this user alone, and takes it. Throws where it cannot be used. */
  static take(path: string): Taking {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const run = join(path, 'run');
    mkdirSync(run, { recursive: true, mode: 0o700 });
    const lock = new DatabaseSync(join(run, 'lock.db'));
    const before = readRecord(run);
    try {
      lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      lock.close();
      if ((error as { errcode?: number }).errcode !== BUSY) throw error;
      return { taken: false, holder: before };
    }
    const earlier = (before?.parts ?? []).filter(({ pid }) => isAlive(pid));
    return { taken: true, dir: new DataDir(run, lock, earlier) };
  }

  /**
   * Holds the directory for as long as `work` takes, and leaves it as it was. Undefined, without running `work`, where
   * another holds it or parts of an earlier supervisor are still alive.
   */
  static async borrow<Result>(
    path: string,
    work: () => Promise<Result>,
  ): Promise<{ result: Result } | undefined> {
    const taking = DataDir.take(path);
    if (!taking.taken) return undefined;
    try {
      return taking.dir.earlier.length > 0 ? undefined : { result: await work() };
    } finally {
      taking.dir.#lock.close();
    }
  }

  /** Says who holds the directory and which parts run. */
  record(record: SupervisorRecord): void {
    this.#write('supervisor.json', JSON.stringify(record), 0o600);
  }

  /** Tells commands where to reach this Armature. */
  publish({ gateway, admin }: Addresses): void {
    this.#write('addresses.json', `${JSON.stringify({ gateway, admin })}\n`, 0o600);
  }

  /** Makes the token with which commands of this user reach the admin listener; one that is there already is kept. */
  keepToken(): void {
    const file = join(this.#run, 'admin.token');
    try {
      writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }

  /** Leaves the directory to whoever comes next: nothing of this Armature runs any more. */
  release(): void {
    for (const file of ['supervisor.json', 'addresses.json', LAST_GOOD_FILE])
      rmSync(join(this.#run, file), { force: true });
    this.#lock.close();
  }

  /** Readers see the old file or the new one, never a part of it. */
  #write(name: string, text: string, mode: number): void {
    const file = join(this.#run, name);
    writeFileSync(`${file}.new`, text, { mode });
    renameSync(`${file}.new`, file);
  }
}

function readRecord(run: string): SupervisorRecord | undefined {
  try {
    return JSON.parse(readFileSync(join(run, 'supervisor.json'), 'utf8')) as SupervisorRecord;
  } catch (error) {
    // Nobody was here before, or whoever was here could not write.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
