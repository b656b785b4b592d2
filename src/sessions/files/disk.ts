import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileStore } from './store/index.ts';

/** A file on the disk that the store does not know of is being written, or was left by a process that died: after so long, that. */
const LEFT_MS = 3_600_000;
const KNOWN_AT_ONCE = 500;

/** Where the bytes of files lie: one folder in the data directory, each under its id. */
export class FileDisk {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  newId(): string {
    return `file-${randomBytes(12).toString('hex')}`;
  }

  /** Makes the folder, for its owner alone. */
  prepare(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  pathOf(id: string): string {
    return join(this.#folder, id);
  }

  /** What is gone already is no fault. */
  async remove(id: string): Promise<void> {
    await unlink(this.pathOf(id)).catch(unlessGone);
  }

  /** Removes what processes that died have left. */
  async sweep(store: FileStore, nowMs: number): Promise<void> {
    const names = await readdir(this.#folder).catch(unlessGone);
    for (let at = 0; names && at < names.length; at += KNOWN_AT_ONCE) {
      const ids = names.slice(at, at + KNOWN_AT_ONCE);
      const known = new Set(await store.call('known', { ids }));
      for (const id of ids.filter((each) => !known.has(each))) {
        const found = await stat(this.pathOf(id)).catch(unlessGone);
        if (found && nowMs - found.mtimeMs > LEFT_MS) await this.remove(id);
      }
    }
  }
}

function unlessGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
