import { parseArgs } from 'node:util';
import { systemClock } from '../../src/kernel/clock.ts';
import { StoreError } from '../../src/store/contracts.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { batchOf } from './ledger-batches.ts';

/**
 * Stores batches in a file until it is killed, and says so of each on stdout: `stored N.`, or the trouble and N. `--from`
 * is the first sequence, `--events` how many events a batch has.
 */

const { values } = parseArgs({
  options: { path: { type: 'string' }, from: { type: 'string' }, events: { type: 'string' } },
});
const store = sqliteStore({ path: values.path!, clock: systemClock });

async function storeBatch(sequence: number): Promise<string> {
  try {
    await store.ledger.storeBatches([
      { boot: 'boot', sequence, events: batchOf(sequence, Number(values.events)) },
    ]);
    return 'stored';
  } catch (error) {
    if (error instanceof StoreError) return error.trouble;
    throw error;
  }
}

for (let sequence = Number(values.from); ; sequence++) {
  const said = await storeBatch(sequence);
  // Never ahead of whoever reads.
  await new Promise<void>((resolve) => process.stdout.write(`${said} ${sequence}.\n`, () => resolve()));
}
