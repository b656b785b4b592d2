import { eventMaker } from '../../events/event-maker.ts';
import type { Path } from '../../gateway/contracts.ts';
import { isAlive } from '../../kernel/alive.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { FileDisk } from '../files/disk.ts';
import type { Look } from '../files/store/claim-operations.ts';
import type { FileStore } from '../files/store/index.ts';
import type { StoredBatch } from '../files/store/rows.ts';
import { BatchRun } from './run.ts';

/** Batches that one worker runs at one time; the others wait for their turn. */
const RUNS_MAX = 8;
/** How often it is looked what is to be done, milliseconds. */
const LOOK_MS = 500;
/** A worker says that it lives so often; one that has not for so long, though its process is there, runs nothing any more. */
const BEAT_MS = 1000;
const STILL_MS = 5000;
/** After a run that failed for want of the store or the disk, nothing new is begun for so long. */
const PAUSE_MS = 2000;
const SWEEP_MS = 5000;
const SWEEP_ROWS = 500;
/** And batches that were over long ago, and what lies on the disk without being known. */
const SWEEP_WHOLE_MS = 3_600_000;
const FORGOTTEN_MAX = 10_000;

export interface RunnerOptions {
  store: FileStore;
  disk: FileDisk;
  /** Drawn anew by each process. */
  boot: string;
  pid: number;
  clock: Clock;
  random: Random;
  timers: Timers;
  log: { warn(fields: object, message: string): void };
}

/** Runs batches in one worker: claims those that nobody runs, also of workers that died, and has each run to its end. */
export class BatchRunner {
  readonly #options: RunnerOptions;
  readonly #runs = new Map<string, { run: BatchRun; over: Promise<void> }>();
  readonly #makeEvent: ReturnType<typeof eventMaker>;
  /** Beats of other workers: what was seen last, and when that was new. */
  readonly #beats = new Map<string, { beat: number; at: number }>();
  #path: Path | undefined;
  #timer: TimerHandle;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #blind = false;
  #draining = false;
  #beatAt = Number.NEGATIVE_INFINITY;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #sweptWholeAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** How many batches are not over, by status, whoever runs them. */
  open: Look['open'] = { validating: 0, in_progress: 0, finalizing: 0, cancelling: 0 };

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#makeEvent = eventMaker(options.clock, options.random);
  }

  start(path: Path): void {
    this.#path = path;
    this.#schedule();
  }

  /** Something may be to be done: a batch has come, or is to be cancelled. */
  poke(): void {
    if (this.#looking) this.#lookAgain = true;
    else this.#lookNow();
  }

  /** No line is begun any more. */
  drain(): void {
    this.#draining = true;
    for (const { run } of this.#runs.values()) run.stop('drained');
  }

  /** Resolves when what it ran is left to others. */
  async close(): Promise<void> {
    this.drain();
    this.#options.timers.clear(this.#timer);
    await this.#looking;
    await Promise.all([...this.#runs.values()].map(({ over }) => over));
    const { store, boot } = this.#options;
    if (this.#beatAt > Number.NEGATIVE_INFINITY)
      await store.call('bury', { boots: [boot] }).catch(() => undefined);
  }

  #schedule(): void {
    this.#timer = this.#options.timers.set(LOOK_MS, () => this.#lookNow());
  }

  #lookNow(): void {
    const { timers, log } = this.#options;
    timers.clear(this.#timer);
    this.#looking = this.#look()
      .then(
        () => {
          this.#blind = false;
        },
        (error: unknown) => {
          // Once for as long as it lasts.
          if (!this.#blind) log.warn({ err: error }, 'batches cannot be looked at');
          this.#blind = true;
        },
      )
      .then(() => {
        this.#looking = undefined;
        if (this.#draining) return;
        if (this.#lookAgain) {
          this.#lookAgain = false;
          this.#lookNow();
        } else this.#schedule();
      });
  }

  async #look(): Promise<void> {
    const { store, boot, clock } = this.#options;
    if (this.#draining || !store.exists || !this.#path?.deps.world.snapshot) return;
    const known = [...this.#runs.values()];
    const look = await store.call('look', { boot });
    this.open = look.open;
    for (const { run } of known) {
      const held = look.mine.find(({ id, epoch }) => id === run.claim.id && epoch === run.claim.epoch);
      if (!held && this.#runs.has(run.claim.id)) run.stop('lost');
      else if (held?.status === 'cancelling') run.stop('cancelled');
    }
    // A run that failed could not be left to others either.
    for (const { id, epoch } of look.mine) {
      if (this.#runs.has(id)) continue;
      await store.call('release', { claim: { id, seq: 0, boot, epoch } });
      look.free++;
    }
    const dead = this.#dead(look.workers);
    if (dead.length > 0) await store.call('bury', { boots: dead });
    const free = look.free > 0 || dead.length > 0;
    const now = clock.mono();
    if ((this.#runs.size > 0 || free) && now - this.#beatAt >= BEAT_MS) {
      await store.call('beat', { boot, pid: this.#options.pid });
      this.#beatAt = now;
    }
    while (free && !this.#draining && this.#runs.size < RUNS_MAX && clock.mono() >= this.#pausedUntil) {
      const batch = await store.call('claim', { boot });
      if (!batch) break;
      this.#run(batch);
    }
    if (now - this.#sweptAt >= SWEEP_MS) await this.#sweep(now);
  }

  #run(batch: StoredBatch): void {
    const { store, disk, clock, random, timers, boot, log } = this.#options;
    const path = this.#path!;
    const tell: BatchRun['deps']['tell'] = (type, about, data) => this.tell(type, about, data);
    const run = new BatchRun({ store, disk, clock, random, timers, path, tell }, batch, boot);
    if (this.#draining) run.stop('drained');
    const over = run
      .run()
      .catch(async (error: unknown) => {
        log.warn({ err: error, batch: batch.id }, 'a batch cannot go on now');
        this.#pausedUntil = clock.mono() + PAUSE_MS;
        await store.call('release', { claim: run.claim }).catch(() => undefined);
      })
      .finally(() => {
        this.#runs.delete(batch.id);
        if (!this.#draining) this.poke();
      });
    this.#runs.set(batch.id, { run, over });
  }

  /** Workers that run nothing any more: their process is gone, or has stood still for long. */
  #dead(workers: Look['workers']): string[] {
    const { boot, pid, clock } = this.#options;
    const now = clock.mono();
    const dead: string[] = [];
    for (const worker of workers) {
      if (worker.boot === boot) continue;
      const seen = this.#beats.get(worker.boot);
      if (!seen || seen.beat !== worker.beat) this.#beats.set(worker.boot, { beat: worker.beat, at: now });
      const isStill = seen !== undefined && seen.beat === worker.beat && now - seen.at >= STILL_MS;
      if (worker.pid === pid || !isAlive(worker.pid) || isStill) {
        dead.push(worker.boot);
        this.#beats.delete(worker.boot);
      }
    }
    return dead;
  }

  /** Removes what is of no use any more, a little at a time. */
  async #sweep(now: number): Promise<void> {
    const { store, disk, clock } = this.#options;
    const nowMs = clock.wall();
    const more = await store.call('sweep', { limit: SWEEP_ROWS });
    const expired = await store.call('removeExpired', { nowMs, limit: SWEEP_ROWS });
    for (const id of expired) await disk.remove(id);
    if (!more && expired.length === 0) this.#sweptAt = now;
    if (now - this.#sweptWholeAt < SWEEP_WHOLE_MS) return;
    this.#sweptWholeAt = now;
    const { keep } = this.#path!.deps.world.snapshot!.settings.batches;
    await store.call('forget', { limit: FORGOTTEN_MAX, beforeMs: nowMs - keep });
    await disk.sweep(store, nowMs);
  }

  /** For the ledger. The event that makes a batch goes by its id, so that whatever follows from it can name it. */
  tell(type: string, batch: StoredBatch, data: Record<string, unknown> = {}): void {
    const created = type === 'batch-created';
    const creation = batch.id.replace(/^batch_/, 'ev_');
    const event = this.#makeEvent({
      type,
      subject: `batch:${batch.id}`,
      actor: created || type === 'batch-cancelled' ? `tenant:${batch.tenant}` : 'armature',
      causes: created ? [] : [creation],
      data: { endpoint: batch.endpoint, inputFile: batch.inputFile, ...data },
    });
    this.#path!.deps.facts.push({ kind: 'event', event: created ? { ...event, id: creation } : event });
  }
}
