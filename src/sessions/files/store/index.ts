import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ThreadedDatabase } from '../../../store/sqlite/threaded.ts';
import type module from './module.ts';

type Operations = ReturnType<typeof module.operations>;

/** What files and batches are kept by. Every call rejects with a StoreError where that cannot be done. */
export type FileStore = Pick<ThreadedDatabase<Operations>, 'call' | 'close'> & {
  /** False: nothing was ever kept, and there is nothing to look for. */
  readonly exists: boolean;
};

/** Nothing is opened, nor made, before the first call. */
export function openFileStore(path: string): FileStore {
  // The sources have one name, the published package another.
  const file = new URL(`./module${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
  const database = new ThreadedDatabase<Operations>({ path, module: file });
  let exists = false;
  return {
    call: (name, args) => database.call(name, args),
    close: () => database.close(),
    get exists() {
      exists ||= existsSync(path);
      return exists;
    },
  };
}
