import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../kernel/assert.ts';
import { systemClock } from '../../kernel/clock.ts';
import { StoreError } from '../contracts.ts';
import { Database } from './database.ts';
import type { Answer, FromThread, ThreadCall, ThreadModule, ThreadOptions, ToThread } from './threaded.ts';

/** The thread that has a SQLite file open; see threaded.ts. */

/** How often the file is looked for under its name, milliseconds. */
const LOOK_MS = 1000;
/** 4 MiB of the log. */
const CHECKPOINT_PAGES = 1000;
/** How often another process that writes is looked at. */
const LOOK_AGAIN_MS = 1;

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
  if (!calls) {
    open?.database.close();
    port.close();
    return;
  }
  // What only reads first: it waits neither for another process that writes nor for the disk.
  const isRead = ({ name }: ThreadCall) => module.reads.includes(name);
  const places = calls.map((_, at) => at);
  const [reads, writes] = [
    places.filter((at) => isRead(calls[at]!)),
    places.filter((at) => !isRead(calls[at]!)),
  ];
  if (reads.length > 0) answer(calls, reads, (database, work) => database.reading(work));
  if (writes.length > 0) answer(calls, writes, (database, work) => database.transaction(work));
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
    const settings = {
      migrations,
      busyMs: 0,
      durable: true,
      erases: true,
      checkpointPages: CHECKPOINT_PAGES,
    };
    const database = new Database(options.path, () => undefined, settings);
    open = { database, operations: module.operations(database) };
  }
  return open;
}

type Transaction = (database: Database, work: () => Answer[]) => Answer[];

/** Carries out some of the calls, all in one transaction; where that cannot be stored, none of it is. */
function answer(calls: readonly ThreadCall[], places: readonly number[], transaction: Transaction): void {
  let answers: Answer[];
  try {
    answers = patiently(() => {
      const { database, operations } = opened();
      return transaction(database, () => places.map((at) => answerTo(calls[at]!, database, operations)));
    });
  } catch (error) {
    answers = places.map(() => told(error));
  }
  port.postMessage({ places, answers } satisfies FromThread);
}

const cell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Tries again while another process writes, for as long as was asked for. SQLite itself would look again after up to 100 ms, and
 * find that others had their turn meanwhile.
 */
function patiently<Result>(work: () => Result): Result {
  const endMs = systemClock.mono() + options.busyMs;
  for (;;) {
    try {
      return work();
    } catch (error) {
      const isBusy = error instanceof StoreError && error.trouble === 'busy';
      if (!isBusy || systemClock.mono() >= endMs) throw error;
    }
    Atomics.wait(cell, 0, 0, LOOK_AGAIN_MS);
  }
}

function answerTo({ name, args }: ThreadCall, database: Database, operations: Open['operations']): Answer {
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

function told(error: unknown): Answer {
  const trouble = error instanceof StoreError ? error.trouble : 'failed';
  return { trouble, message: (error as Error).message };
}
