import type { Database } from '../../../store/sqlite/database.ts';
import type { ThreadModule } from '../../../store/sqlite/threaded.ts';
import { batchOperations } from './batch-operations.ts';
import { claimOperations } from './claim-operations.ts';
import { fileOperations } from './file-operations.ts';
import { migrations } from './tables.ts';

/** What can be done with the database of files and batches, in its thread. */
const module = {
  migrations,
  reads: ['file', 'files', 'known', 'batch', 'batches', 'done', 'results', 'look'],
  operations: (database: Database) =>
    over(database, { ...fileOperations, ...batchOperations, ...claimOperations }),
} satisfies ThreadModule;

export default module;

type Over<Operations> = {
  [Name in keyof Operations]: Operations[Name] extends (database: Database, args: infer Args) => infer Result
    ? (args: Args) => Result
    : never;
};

function over<Operations extends Record<string, (database: Database, args: never) => unknown>>(
  database: Database,
  operations: Operations,
): Over<Operations> {
  const bound = Object.entries(operations).map(([name, run]) => [name, run.bind(undefined, database)]);
  return Object.fromEntries(bound) as Over<Operations>;
}
