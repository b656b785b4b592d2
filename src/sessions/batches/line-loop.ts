import type { FileHandle } from 'node:fs/promises';
import type { Exchange } from '../../gateway/contracts.ts';
import type { LineResult } from '../files/store/batch-operations.ts';
import { ANSWER_BYTES_MAX, type LineAnswer, LineAsk } from './asking.ts';
import { type LineRequest, readLineRequest } from './line-request.ts';
import type { LinePlace, LineReader, LineSet } from './lines.ts';
import { isTenant } from './models.ts';
import { LIMIT_MAX, Pace } from './pace.ts';
import { answeredText, unansweredText } from './result-text.ts';
import type { BatchRun } from './run.ts';
import { verdictOf } from './verdict.ts';

/** Lines that wait to be asked once more: beyond so many, no new one is begun. */
const AGAIN_MAX = 1000;
/** For how long there is no room for a line's bytes among the worker's buffers before it is looked for again, milliseconds. */
const ROOM_MS = 100;
/** How long lines that an engine works on may go on when the batch is cancelled. */
const CANCEL_MS = 10_000;
/**
 * A line that an engine fails to answer so often, for so long, while its route answers others each time in between, fails for
 * what it asks, and not for want of an engine that is well.
 */
const OWN_FAILURES = 20;
const OWN_FAILURES_MS = 1_200_000;
const OWN_PAUSE_MS = 300;
const OWN_PAUSE_MS_MAX = 45_000;
const TOO_LONG = {
  code: 'answer_too_long',
  message: `The answer had more than the ${ANSWER_BYTES_MAX} bytes that one may have.`,
};

/** A line that has been read and not been asked, or has to be asked once more. */
interface Pending extends LinePlace {
  model: string;
  /** Monotonic: it is not asked before. */
  from: number;
  /** How often it was asked in vain; and how often so, while others were answered. */
  asked: number;
  failures: number;
  /** Monotonic, of its first failure; and how many lines were answered by the time of its last. */
  failingSince: number;
  answeredThen: number;
  bytes: Buffer | undefined;
}

/** Asks all lines that are not done. Resolves when none is on its way any more; rejects where what came of one cannot be kept. */
export function askLines(
  run: BatchRun,
  reader: LineReader,
  handle: FileHandle,
  done: LineSet,
): Promise<void> {
  return new LineLoop(run, reader, handle, done).go();
}

class LineLoop {
  readonly #run: BatchRun;
  readonly #reader: LineReader;
  readonly #handle: FileHandle;
  readonly #done: LineSet;
  readonly #paces = new Map<string, Pace>();
  readonly #again: Pending[] = [];
  readonly #flying = new Set<LineAsk>();
  /** Lines on their way, those included whose result is not on the disk yet. */
  #inflight = 0;
  #answered = 0;
  #held: Pending | undefined;
  #readAll = false;
  #error: unknown;
  #noRoomUntil = 0;

  constructor(run: BatchRun, reader: LineReader, handle: FileHandle, done: LineSet) {
    this.#run = run;
    this.#reader = reader;
    this.#handle = handle;
    this.#done = done;
  }

  async go(): Promise<void> {
    try {
      await this.#askAll();
    } catch (error) {
      this.#error ??= error;
    }
    await this.#land();
    if (this.#error !== undefined) throw this.#error;
  }

  async #askAll(): Promise<void> {
    const { clock } = this.#run.deps;
    while (!this.#ends()) {
      const now = clock.mono();
      if (this.#held === undefined && !this.#readAll && this.#again.length < AGAIN_MAX) await this.#read();
      const next = this.#choose(now);
      if (next) await this.#begin(next);
      else if (!this.#isAllAsked) await this.#until(this.#nextAt(now) - now);
      else break;
    }
  }

  get #isAllAsked(): boolean {
    return this.#readAll && !this.#held && this.#again.length === 0 && this.#inflight === 0;
  }

  #ends(): boolean {
    const run = this.#run;
    if (run.stopped === undefined && run.deps.clock.wall() >= run.batch.expiresMs) run.stop('expired');
    return run.stopped !== undefined || this.#error !== undefined;
  }

  /** The next line that is not done. */
  async #read(): Promise<void> {
    for (;;) {
      const found = await this.#reader.next();
      if (!found) {
        this.#readAll = true;
        return;
      }
      if (this.#done.has(found.line)) continue;
      const read = readLineRequest(found.bytes!, this.#run.batch.endpoint, true);
      const model = 'code' in read ? '' : read.model;
      const { line, offset, length, bytes } = found;
      this.#held = {
        line,
        offset,
        length,
        model,
        from: 0,
        asked: 0,
        failures: 0,
        failingSince: 0,
        answeredThen: 0,
        bytes,
      };
      return;
    }
  }

  /** Takes the line that is to be asked now; those that were asked before go first. */
  #choose(now: number): Pending | undefined {
    if (this.#inflight >= LIMIT_MAX || now < this.#noRoomUntil) return undefined;
    const fits = (line: Pending) => line.from <= now && this.#paceOf(line.model).hasRoom(now);
    const at = this.#again.findIndex(fits);
    const next = at >= 0 ? this.#again[at] : this.#held && fits(this.#held) ? this.#held : undefined;
    if (!next) return undefined;
    if (!this.#run.deps.path.deps.buffers.take(next.length)) {
      this.#noRoomUntil = now + ROOM_MS;
      return undefined;
    }
    if (at >= 0) this.#again.splice(at, 1);
    else this.#held = undefined;
    return next;
  }

  /** When a line may be asked that may not be now, as far as that goes by time. */
  #nextAt(now: number): number {
    const { batch, deps } = this.#run;
    let at = now + batch.expiresMs - deps.clock.wall();
    if (this.#inflight >= LIMIT_MAX) return at;
    for (const line of this.#held ? [...this.#again, this.#held] : this.#again) {
      const pace = this.#paceOf(line.model);
      const from = Math.max(line.from, pace.pausedUntil, this.#noRoomUntil);
      // One that waits for its place goes when a line comes back.
      if (pace.inflight < pace.limit) at = Math.min(at, from);
    }
    return at;
  }

  #paceOf(model: string): Pace {
    let pace = this.#paces.get(model);
    if (!pace) {
      pace = new Pace();
      this.#paces.set(model, pace);
    }
    return pace;
  }

  async #begin(next: Pending): Promise<void> {
    const { deps, batch } = this.#run;
    const { path } = deps;
    const bytes = next.bytes ?? (await this.#bytesOf(next));
    next.bytes = undefined;
    const read = readLineRequest(bytes, batch.endpoint, true) as LineRequest;
    const pace = this.#paceOf(next.model);
    this.#inflight++;
    pace.begin();
    if (this.#run.stopped !== undefined || !isTenant(path.deps.world, batch.tenant)) {
      path.deps.buffers.give(next.length);
      pace.left();
      if (this.#run.stopped === undefined) await this.#keep(tenantGone(batch.tenant, batch.id, next, read));
      this.#inflight--;
      return;
    }
    // What it was read from is larger, and not to be held as long.
    const body = Buffer.from(bytes.subarray(read.start, read.end));
    let over = false;
    let ask: LineAsk | undefined;
    const line = { endpoint: batch.endpoint, body, tenant: batch.tenant };
    ask = new LineAsk(path, line, (x, answer) => {
      over = true;
      if (ask) this.#flying.delete(ask);
      path.deps.buffers.give(next.length);
      void this.#over(next, read, pace, x, answer).then(() => path.deps.buffers.give(answer.held));
    });
    if (!over) this.#flying.add(ask);
  }

  async #bytesOf({ offset, length }: LinePlace): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    try {
      await this.#handle.read(bytes, 0, length, offset);
    } catch (error) {
      this.#run.deps.path.deps.buffers.give(length);
      throw error;
    }
    return bytes;
  }

  /** Resolves when nothing of the answer is needed any more. */
  async #over(next: Pending, read: LineRequest, pace: Pace, x: Exchange, answer: LineAnswer): Promise<void> {
    const { clock } = this.#run.deps;
    const now = clock.mono();
    const verdict = verdictOf(x);
    if (answer.givenUp === 'too-long') {
      pace.left();
      await this.#result(next.line, true, unansweredText(`batch_${x.id}`, read.customId, TOO_LONG));
      return;
    }
    if (verdict.kind === 'left') {
      pace.left();
      if (answer.givenUp === 'no-room') this.#later(next, now + this.#ownPauseMs(next));
      this.#landed();
      return;
    }
    if (verdict.kind === 'later') {
      const ms = pace.refused(verdict.why, verdict.afterMs, now, this.#run.deps.random);
      if (!verdict.itsOwn || !this.#isItsOwn(next, x, now)) {
        const pausesAlone = verdict.why === 'failed' || verdict.why === 'held';
        this.#later(next, now + (pausesAlone ? Math.max(ms, this.#ownPauseMs(next)) : ms));
        this.#landed();
        return;
      }
    } else pace.answered(x.waitedMs, Math.max(1, now - x.startedAt - x.waitedMs), now);
    this.#answered++;
    await this.#result(next.line, verdict.kind !== 'answered', answeredText(x.id, read.customId, answer));
  }

  #later(next: Pending, from: number): void {
    this.#run.deps.path.deps.metrics.batchLines.of('again').add();
    next.from = from;
    this.#again.push(next);
  }

  async #result(line: number, failed: boolean, text: string): Promise<void> {
    this.#run.deps.path.deps.metrics.batchLines.of(failed ? 'failed' : 'answered').add();
    await this.#keep({ line, failed, text });
    this.#landed();
  }

  /** Longer than the others of its model pause for it: they have their turn before it comes again. */
  #ownPauseMs(line: Pending): number {
    const ms = Math.min(OWN_PAUSE_MS_MAX, OWN_PAUSE_MS * 2 ** line.asked++);
    return ms * (0.75 + this.#run.deps.random.next() / 4);
  }

  /** Whether the line fails for what it asks: again and again, while its route answers others. */
  #isItsOwn(line: Pending, { route }: Exchange, now: number): boolean {
    const answered = this.#answered + (route?.usualOut.answers ?? 0);
    if (line.failures === 0) line.failingSince = now;
    else if (answered === line.answeredThen) return false;
    line.answeredThen = answered;
    line.failures++;
    return line.failures >= OWN_FAILURES && now - line.failingSince >= OWN_FAILURES_MS;
  }

  async #keep(result: LineResult): Promise<void> {
    try {
      await this.#run.keep(result);
    } catch (error) {
      this.#error ??= error;
    }
  }

  #landed(): void {
    this.#inflight--;
    this.#run.wake();
  }

  /** No line is begun any more: those that no engine has are given up, the others are waited for. */
  async #land(): Promise<void> {
    const { stopped } = this.#run;
    const { clock, path } = this.#run.deps;
    const unsent = new Set<unknown>();
    // The stages of a pipeline are requests of their own: whether one of them was sent does not show in its line.
    for (const { attempts, route, terms } of path.running)
      if (attempts === 0 && !route?.pipeline) unsent.add(terms);
    for (const ask of [...this.#flying]) if (unsent.has(ask.terms)) ask.leave();
    const end = clock.mono() + (stopped === 'drained' ? Number.POSITIVE_INFINITY : CANCEL_MS);
    while (this.#inflight > 0) {
      const left = end - clock.mono();
      if (left <= 0 || this.#run.stopped === 'lost') for (const ask of [...this.#flying]) ask.leave();
      if (this.#inflight > 0) await this.#until(left <= 0 ? Number.POSITIVE_INFINITY : left);
    }
  }

  /** Resolves when something has happened to the batch or one of its lines, or after so long. */
  async #until(ms: number): Promise<void> {
    const run = this.#run;
    const { timers } = run.deps;
    await new Promise<void>((resolve) => {
      const timer = timers.set(Math.max(1, ms), resolve);
      run.wake = () => {
        timers.clear(timer);
        resolve();
      };
    });
    run.wake = () => undefined;
  }
}

function tenantGone(tenant: string, id: string, { line }: LinePlace, { customId }: LineRequest): LineResult {
  const message = `The tenant '${tenant}' is not configured any more.`;
  const text = unansweredText(`${id}_${line + 1}`, customId, { code: 'unauthorized', message });
  return { line, failed: true, text };
}
