import { type FileHandle, open } from 'node:fs/promises';
import type { Path } from '../../gateway/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { pause, type Timers } from '../../kernel/timers.ts';
import { StoreError } from '../../store/contracts.ts';
import type { FileDisk } from '../files/disk.ts';
import type { Claim, LineResult } from '../files/store/batch-operations.ts';
import type { FileStore } from '../files/store/index.ts';
import type { BatchFault, StoredBatch } from '../files/store/rows.ts';
import { checkFile } from './check.ts';
import { askLines } from './line-loop.ts';
import { readLineRequest } from './line-request.ts';
import { LineReader, LineSet } from './lines.ts';
import { whyNotModel } from './models.ts';
import { writeResults } from './output.ts';
import { unansweredText } from './result-text.ts';

export interface RunDeps {
  store: FileStore;
  disk: FileDisk;
  clock: Clock;
  random: Random;
  timers: Timers;
  path: Path;
  /** Tells what became of a batch, for the ledger. */
  tell(type: string, batch: StoredBatch, data?: Record<string, unknown>): void;
}

/** Why no more lines are begun before all of them are asked. `lost`: another worker runs the batch now. */
export type Stop = 'cancelled' | 'expired' | 'drained' | 'lost';

const DONE_PAGE = 10_000;
/** Beside its body, a line has its own members. */
const LINE_BYTES_MORE = 4096;

/** One batch, run by the worker that has claimed it: from wherever it stands to its end, or until the worker has to leave it. */
export class BatchRun {
  readonly claim: Claim;
  readonly deps: RunDeps;
  batch: StoredBatch;
  stopped: Stop | undefined;
  /** Called when something may go on: set by whoever waits. */
  wake: () => void = () => undefined;

  constructor(deps: RunDeps, batch: StoredBatch, boot: string) {
    this.deps = deps;
    this.batch = batch;
    this.claim = { id: batch.id, seq: batch.seq, boot, epoch: batch.epoch };
    if (batch.status === 'cancelling') this.stopped = 'cancelled';
  }

  stop(why: Stop): void {
    // Whatever it was stopped for before, a batch that is another's is not touched any more.
    if (this.stopped === undefined || why === 'lost' || (why === 'drained' && this.stopped !== 'lost'))
      this.stopped = why;
    this.wake();
  }

  /** Resolves when this worker has nothing more to do for it. Rejects where the store or the disk fails. */
  async run(): Promise<void> {
    const { store } = this.deps;
    let handle: FileHandle;
    try {
      handle = await open(this.deps.disk.pathOf(this.batch.inputFile));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await this.#refuse([fileGone(this.batch.inputFile)]);
      return;
    }
    try {
      if (this.batch.status === 'validating') {
        if (!(await this.#check(handle))) return;
      } else if (this.batch.status === 'in_progress') {
        const { total, completed, failed } = this.batch;
        this.deps.tell('batch-resumed', this.batch, { lines: total, completed, failed });
      }
      if (this.batch.status === 'in_progress') await this.#ask(handle);
      if (this.stopped !== 'drained' && this.stopped !== 'lost') await this.#end(handle);
    } catch (error) {
      if (!(error instanceof StoreError && error.trouble === 'conflict')) throw error;
      this.stopped = 'lost';
    } finally {
      await handle.close();
      if (this.stopped === 'drained') await store.call('release', { claim: this.claim });
    }
  }

  /** Whether its lines are to be asked, or what was asked of them told. */
  async #check(handle: FileHandle): Promise<boolean> {
    const { path, clock, store } = this.deps;
    const { batches, gateway } = path.deps.world.snapshot!.settings;
    const { tenant, endpoint } = this.batch;
    const checked = await checkFile(handle, {
      endpoint,
      linesMax: batches.linesMax,
      bytesMax: gateway.bodyBytesMax + LINE_BYTES_MORE,
      whyNot: (model) => whyNotModel(path.deps.world, tenant, model),
      ended: () => this.stopped !== undefined,
    });
    if (!checked) return this.stopped === 'cancelled';
    if ('faults' in checked) {
      await this.#refuse(checked.faults);
      return false;
    }
    this.batch = await store.call('begin', { claim: this.claim, total: checked.total, nowMs: clock.wall() });
    if (this.batch.status === 'cancelling') this.stop('cancelled');
    else this.deps.tell('batch-began', this.batch, { lines: checked.total });
    return true;
  }

  async #refuse(errors: BatchFault[]): Promise<void> {
    const { store, clock, tell } = this.deps;
    this.batch = await store.call('refuseBatch', { claim: this.claim, errors, nowMs: clock.wall() });
    const [first] = errors;
    tell('batch-failed', this.batch, {
      faults: errors.length,
      line: first!.line,
      fault: first!.message.replace(/\.$/, ''),
    });
  }

  async #ask(handle: FileHandle): Promise<void> {
    const done = await this.#done();
    await askLines(this, new LineReader(handle, Number.POSITIVE_INFINITY), handle, done);
  }

  async #done(): Promise<LineSet> {
    const { store } = this.deps;
    const done = new LineSet();
    for (let after = -1; ; ) {
      const page = await store.call('done', { seq: this.claim.seq, after, limit: DONE_PAGE });
      for (const line of page) done.add(line);
      if (page.length < DONE_PAGE) return done;
      after = page.at(-1)!;
    }
  }

  /** Its answers become files, and it is over. */
  async #end(handle: FileHandle): Promise<void> {
    const { store, clock, disk, tell } = this.deps;
    const { claim } = this;
    const nowMs = clock.wall();
    this.batch = await store.call('finalize', { claim, nowMs });
    const all = this.batch.completed + this.batch.failed === this.batch.total;
    const status =
      this.batch.status === 'cancelling' ? 'cancelled' : all ? ('completed' as const) : ('expired' as const);
    const files = { store, disk, nowMs };
    const output = await writeResults(files, this.batch, false);
    const more = status === 'expired' ? this.#unanswered(handle, await this.#done()) : undefined;
    const errors = await writeResults(files, this.batch, true, more);
    this.batch = await store.call('end', { claim, status, output, errors, nowMs: clock.wall() });
    const { total, completed, failed } = this.batch;
    tell(`batch-${status}`, this.batch, { lines: total, completed, failed });
  }

  /** The lines for which the time did not suffice. */
  async *#unanswered(handle: FileHandle, done: LineSet): AsyncIterable<string> {
    const reader = new LineReader(handle, Number.POSITIVE_INFINITY);
    for (let found = await reader.next(); found; found = await reader.next()) {
      if (done.has(found.line)) continue;
      const read = readLineRequest(found.bytes!, this.batch.endpoint, true);
      if ('code' in read) continue;
      yield unansweredText(`${this.batch.id}_${found.line + 1}`, read.customId, {
        code: 'batch_expired',
        message: 'This request could not be executed before the completion window expired.',
      });
    }
  }

  /** Keeps what became of a line. Rejects only where it cannot be kept any more; what may be mended is waited for. */
  async keep(result: LineResult): Promise<void> {
    const { store, timers, random } = this.deps;
    for (let attempt = 0; ; attempt++) {
      try {
        await store.call('keepResult', { claim: this.claim, result });
        return;
      } catch (error) {
        const { trouble } = error as StoreError;
        if (trouble === 'conflict' || trouble === 'closed' || this.stopped === 'lost') throw error;
      }
      const ms = Math.min(10_000, 200 * 2 ** attempt) * (0.5 + random.next() / 2);
      await pause(timers, ms);
    }
  }
}

function fileGone(id: string): BatchFault {
  return {
    code: 'input_file_gone',
    message: `The file ${id} is not there any more.`,
    param: 'input_file_id',
    line: null,
  };
}
