import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../kernel/assert.ts';
import { systemClock } from '../../kernel/clock.ts';
import { StoreError } from '../contracts.ts';
import { Database } from './database.ts';
import type { FromThread, ThreadCall, ThreadModule, ThreadOptions, ToThread } from './threaded.ts';

/** The thread that has a SQLite file open; see threaded.ts. */

/** How often the file is looked for under its name, milliseconds. */
const LOOK_MS = 1000;

assert(parentPort, 'this file is the beginning of a worker thread');
const port: MessagePort = parentPort;
const options = workerData as ThreadOptions;
const { default: module } = (await import(options.module)) as { default: ThreadModule };

interface Open {
  database: Database;
  operations: Record<string, (args: never) => unknown>;
}

let open: Open | undefined;
let lookedMs = systemClock.mono();

port.on('message', (calls: ToThread) => {
  if (calls) {
    port.postMessage(answersTo(calls));
    return;
  }
  open?.database.close();
  port.close();
});

/** Opened at the first call, and anew when it was removed, replaced or damaged. */
function opened(): Open {
  const now = systemClock.mono();
  if (open && now - lookedMs >= LOOK_MS) {
    lookedMs = now;
    if (!open.database.inPlace || open.database.suspect) {
      open.database.close();
      open = undefined;
    }
  }
  if (!open) {
    const { migrations } = module;
    const { path, busyMs } = options;
    const database = new Database(path, () => undefined, { migrations, busyMs, durable: true, erases: true });
    open = { database, operations: module.operations(database) };
  }
  return open;
}

/** All in one transaction; where that cannot be stored, none of it is. */
function answersTo(calls: readonly ThreadCall[]): FromThread {
  try {
    const { database, operations } = opened();
    const work = () => calls.map((call) => answerTo(call, database, operations));
    return calls.every(({ name }) => module.reads.includes(name))
      ? database.reading(work)
      : database.transaction(work);
  } catch (error) {
    return calls.map(() => told(error));
  }
}

function answerTo({ name, args }: ThreadCall, database: Database, operations: Open['operations']) {
  try {
    const operation = operations[name];
    if (!operation) throw new StoreError('failed', `there is no operation '${name}'`);
    return { result: database.savepoint(() => operation(args as never)) };
  } catch (error) {
    // What came before it is undone as well.
    if (!database.isTransaction) throw error;
    return told(error);
  }
}

function told(error: unknown): FromThread[number] {
  const trouble = error instanceof StoreError ? error.trouble : 'failed';
  return { trouble, message: (error as Error).message };
}
