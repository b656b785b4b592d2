import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SessionsStore } from '../sessions.ts';
import type module from './sessions-operations.ts';
import { ThreadedDatabase } from './threaded.ts';

type Operations = ReturnType<typeof module.operations>;

/**
 * The sessions in the file `sessions.db` of a data directory, by a thread of their own. Each worker opens it, and control: they
 * see what the others have stored.
 */
export function sessionsIn(dataDir: string): SessionsStore {
  // The sources have one name, the published package another.
  const file = `./sessions-operations${extname(fileURLToPath(import.meta.url))}`;
  const database = new ThreadedDatabase<Operations>({
    path: sessionsFile(dataDir),
    module: new URL(file, import.meta.url),
  });
  return byCalling(
    (name, args) => database.call(name, args as never),
    () => database.close(),
  );
}

export function sessionsFile(dataDir: string): string {
  return join(dataDir, 'sessions.db');
}

/** Every operation there is. */
const NAMES = {
  response: true,
  inputItems: true,
  removeResponse: true,
  chain: true,
  itemsById: true,
  keep: true,
  takeLine: true,
  renewLine: true,
  releaseLine: true,
  createConversation: true,
  conversation: true,
  setMetadata: true,
  removeConversation: true,
  items: true,
  addItems: true,
  item: true,
  removeItem: true,
  list: true,
  show: true,
  requestOf: true,
  remove: true,
  sweep: true,
} satisfies Record<keyof Operations, true>;

/** A store whose calls are those of the operations. */
export function byCalling(
  call: (name: keyof Operations, args: unknown) => Promise<unknown>,
  close: () => Promise<void>,
): SessionsStore {
  const names = Object.keys(NAMES) as (keyof Operations)[];
  const calls = Object.fromEntries(names.map((name) => [name, (args: unknown) => call(name, args)]));
  return { ...calls, close } as unknown as SessionsStore;
}
