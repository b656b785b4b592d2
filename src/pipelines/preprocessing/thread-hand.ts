import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { Chunk, ChunkDone, ChunkFailed, Hand } from './crew.ts';

/** A chunk that takes longer is given up, and its thread with it: there are texts that a tokenizer's patterns never end with. */
const CHUNK_MS_MAX = 10_000;
/** The heap of a thread, MiB: a text that needs more ends its thread, and nothing else. */
const HEAP_MIB_MAX = 512;

type Waiting = (result: ChunkDone | ChunkFailed) => void;

/** A worker thread, started when there is work, and anew when it has died. */
export class ThreadHand implements Hand {
  readonly #timers: Timers;
  /** What is told when a thread dies. */
  readonly #onDied: ((message: string) => void) | undefined;
  #worker: Worker | undefined;
  /** In the order in which the thread answers. */
  #waiting: Waiting[] = [];
  #timer: TimerHandle;

  constructor(timers: Timers, onDied?: (message: string) => void) {
    this.#timers = timers;
    this.#onDied = onDied;
  }

  work(chunk: Chunk, done: Waiting): void {
    this.#worker ??= this.#start();
    this.#waiting.push(done);
    if (this.#waiting.length === 1) this.#watch();
    this.#worker.postMessage(chunk);
  }

  close(): void {
    this.#waiting = [];
    this.#timers.clear(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
  }

  #start(): Worker {
    // The sources have one name, the published package another.
    const file = new URL(`./thread${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
    const worker = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX } });
    worker.on('message', (result: ChunkDone | ChunkFailed) => {
      if (worker !== this.#worker) return;
      const done = this.#waiting.shift();
      this.#watch();
      done?.(result);
    });
    worker.on('error', (error) => this.#died(worker, (error as Error).message));
    worker.on('exit', () => this.#died(worker, 'the thread ended'));
    worker.unref();
    return worker;
  }

  #watch(): void {
    this.#timers.clear(this.#timer);
    if (this.#waiting.length === 0) return;
    const worker = this.#worker!;
    this.#timer = this.#timers.set(CHUNK_MS_MAX, () => {
      void worker.terminate();
      this.#died(worker, `it took more than ${CHUNK_MS_MAX} ms`);
    });
  }

  #died(worker: Worker, message: string): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    this.#timers.clear(this.#timer);
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#onDied?.(message);
    // The one it worked on may have been what it died of; the others had no part in it, but cannot be told apart from here.
    for (const done of waiting) done({ failed: 'died', message });
  }
}
