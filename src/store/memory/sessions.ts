import type { SessionsStore } from '../sessions.ts';
import { Database, IN_MEMORY } from '../sqlite/database.ts';
import { byCalling } from '../sqlite/sessions.ts';
import module from '../sqlite/sessions-operations.ts';

/** Sessions that are kept nowhere, for tests in virtual time: the same operations, on a database in memory, without a thread. */
export function sessionsInMemory(): SessionsStore {
  const database = new Database(IN_MEMORY, () => undefined, { migrations: module.migrations });
  const operations = module.operations(database);
  return byCalling(
    async (name, args) => database.transaction(() => operations[name](args as never)),
    async () => database.close(),
  );
}
