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
  operations: (database: Database) => ({
    ...fileOperations(database),
    ...batchOperations(database),
    ...claimOperations(database),
  }),
} satisfies ThreadModule;

export default module;
