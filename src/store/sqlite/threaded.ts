import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { StoreError, type StoreTrouble } from '../contracts.ts';
import type { Migration } from '../migrations/index.ts';
import type { Database } from './database.ts';

/**
 * A SQLite file that a thread has open. node:sqlite blocks its thread while the disk works, and a gateway's worker may not
 * stand still: its thread does the waiting. Several workers open the same file, each by a thread of its own.
 *
 * What is called while the thread is busy is carried out together, in one transaction that is on the disk (one fsync) before
 * any of it is told to be done. One call that fails undoes what it changed itself, and nothing of the others.
 */

/** What can be done with the file; the default export of a module that the thread loads. */
export interface ThreadModule {
  migrations: readonly Migration[];
  /** Operations that change nothing: alone, they wait for nobody who writes. */
  reads: readonly string[];
  /** Called once for each opening of the file. An operation throws a StoreError for what its caller should tell apart. */
  operations(database: Database): Record<string, (args: never) => unknown>;
}

/** What the thread is told, in `workerData`. */
export interface ThreadOptions {
  path: string;
  /** Address of the module, as `import` takes it. */
  module: string;
  busyMs: number;
}

export interface ThreadCall {
  name: string;
  args: unknown;
}

/** Calls to be carried out together; undefined: the file is to be closed. */
export type ToThread = readonly ThreadCall[] | undefined;

export type Answer = { result: unknown } | { trouble: StoreTrouble; message: string };

/** Answers to some of the calls, by their places among them; those that only read come first. */
export interface FromThread {
  places: readonly number[];
  answers: readonly Answer[];
}

export interface ThreadedOptions {
  path: string;
  module: URL;
  /** How long a transaction waits for another process that writes, milliseconds. */
  busyMs?: number;
  /** Calls that may wait for the thread; beyond them a call rejects as `busy`. What they carry is their callers' to bound. */
  callsMax?: number;
}

const BUSY_MS = 5_000;
const CALLS_MAX = 10_000;
/** The most calls of one transaction: it holds the file for as long as they take. */
const BATCH_MAX = 256;

type ArgumentOf<Operation> = Operation extends (args: infer Argument) => unknown ? Argument : never;
type ResultOf<Operation> = Operation extends (args: never) => infer Result ? Result : never;

interface Waiting extends ThreadCall {
  resolve(result: never): void;
  reject(error: StoreError): void;
}

/** `Operations` is what the module's `operations` gives back: `ThreadedDatabase<ReturnType<typeof module.operations>>`. */
export class ThreadedDatabase<Operations extends object> {
  readonly #options: ThreadedOptions;
  #worker: Worker | undefined;
  #waiting: Waiting[] = [];
  /** What the thread has been given; undefined where it has told the end of it. */
  #running: (Waiting | undefined)[] = [];
  /** How many of them it has not told the end of. */
  #untold = 0;
  #scheduled = false;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;

  /** Nothing is opened before the first call. */
  constructor(options: ThreadedOptions) {
    this.#options = options;
  }

  /**
   * Carries out the operation of that name. Resolves when what it changed is on the disk; rejects with a StoreError, and then
   * has changed nothing. `args` and result are copied to and from the thread.
   */
  call<Name extends keyof Operations & string>(
    name: Name,
    args: ArgumentOf<Operations[Name]>,
  ): Promise<ResultOf<Operations[Name]>> {
    if (this.#closing) return Promise.reject(new StoreError('closed', 'the store is closed'));
    if (this.#waiting.length >= (this.#options.callsMax ?? CALLS_MAX))
      return Promise.reject(new StoreError('busy', 'too much waits to be stored'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, args, resolve, reject });
      this.#schedule();
    });
  }

  /** Resolves when everything that was called is done and the file is closed. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#closed = resolve;
      this.#schedule();
    });
    return this.#closing;
  }

  /** What is called in one turn of the loop goes together. */
  #schedule(): void {
    if (this.#scheduled || this.#running.length > 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#running.length > 0) return;
    if (this.#waiting.length === 0) {
      if (this.#closing) this.#leave();
      return;
    }
    const next = this.#waiting.splice(0, BATCH_MAX);
    this.#running = next;
    this.#untold = next.length;
    this.#worker ??= this.#start();
    const calls: ToThread = next.map(({ name, args }) => ({ name, args }));
    try {
      this.#worker.postMessage(calls);
    } catch (error) {
      this.#fail(new StoreError('failed', (error as Error).message)); // something that cannot be copied
      this.#schedule();
    }
  }

  #start(): Worker {
    const { path, module, busyMs = BUSY_MS } = this.#options;
    // The sources have one name, the published package another.
    const file = new URL(`./thread-entry${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
    const workerData: ThreadOptions = { path, module: module.href, busyMs };
    const worker = new Worker(file, { workerData, name: 'store' });
    worker.on('message', (answers: FromThread) => {
      // What a thread that died had still said is told as failed already.
      if (this.#worker === worker) this.#told(answers);
    });
    worker.on('error', (error) => this.#died(worker, error as Error));
    worker.on('exit', () => this.#died(worker, new Error('the thread that stores has ended')));
    return worker;
  }

  #told({ places, answers }: FromThread): void {
    const done = places.map((place) => this.#running[place]!);
    for (const place of places) this.#running[place] = undefined;
    this.#untold -= places.length;
    if (this.#untold === 0) {
      this.#running = [];
      // Before anybody is told: whoever calls again at once then goes with all the others that wait.
      this.#schedule();
    }
    done.forEach(({ resolve, reject }, at) => {
      const answer = answers[at]!;
      if ('trouble' in answer) reject(new StoreError(answer.trouble, answer.message));
      else resolve(answer.result as never);
    });
  }

  /** The next call starts another. */
  #died(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#fail(new StoreError('failed', error.message, { cause: error }));
    this.#schedule();
  }

  #fail(error: StoreError): void {
    const failed = this.#running;
    this.#running = [];
    this.#untold = 0;
    for (const call of failed) call?.reject(error);
  }

  #leave(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    const closed = this.#closed!;
    if (!worker) {
      closed();
      return;
    }
    worker.on('exit', closed);
    worker.postMessage(undefined satisfies ToThread);
  }
}
