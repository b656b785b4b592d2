import type { Clock } from '../../kernel/clock.ts';
import { priorities } from '../../kernel/priorities.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { TokenizeAsk, Tokenized, TokenizeFailure, TokenizerPool } from './contracts.ts';
import type { Chunk, ChunkDone, ChunkFailed, Hand } from './crew.ts';

/** What goes to a hand at once: enough that the way there costs little, and little enough that others get their turn. */
const CHUNK_TEXTS_MAX = 32;
const CHUNK_CHARACTERS_MAX = 32_768;
/** Chunks that one hand has at once: the next one is there when it ends one. */
const CHUNKS_PER_HAND = 2;
/** Times that work is tried whose thread dies. */
const TRIES_MAX = 2;

export interface PoolSettings {
  threads: number;
  /** Texts that may wait. */
  queueMax: number;
}

interface Job {
  ask: TokenizeAsk;
  done: (result: Tokenized | TokenizeFailure) => void;
  /** The text whose turn is next; and texts without an answer. */
  next: number;
  left: number;
  counts: number[];
  ids: Int32Array[];
  over: boolean;
}

/** Texts `from` to `to` of a job. */
interface Piece {
  job: Job;
  from: number;
  to: number;
  tries: number;
}

interface Seat {
  hand: Hand;
  busy: number;
}

/**
 * Those who make tokens, and what waits for them: by priority, and within one in turns, chunk by chunk, so that a long list
 * holds up nobody. Bounded in texts; the bytes of the texts are held, and bounded, by whoever asks.
 */
export class Pool implements TokenizerPool {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #hire: () => Hand;
  /** By rank. */
  readonly #queues: Job[][] = priorities.map(() => []);
  /** Pieces whose hand died: they go first. */
  readonly #again: Piece[] = [];
  readonly #seats: Seat[] = [];
  #settings: PoolSettings;
  #waiting = 0;
  #running = 0;

  constructor(parts: { clock: Clock; timers: Timers; hire: () => Hand; settings: PoolSettings }) {
    this.#clock = parts.clock;
    this.#timers = parts.timers;
    this.#hire = parts.hire;
    this.#settings = parts.settings;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get running(): number {
    return this.#running;
  }

  get settings(): PoolSettings {
    return this.#settings;
  }

  /** Takes effect with what comes next; hands that are too many go when they have nothing to do. */
  set settings(settings: PoolSettings) {
    this.#settings = settings;
    this.#dismiss();
    this.#work();
  }

  tokenize(ask: TokenizeAsk, done: (result: Tokenized | TokenizeFailure) => void): () => void {
    const left = ask.texts.length;
    const job: Job = { ask, done, next: 0, left, counts: [], ids: [], over: false };
    if (this.#waiting + left > this.#settings.queueMax && this.#waiting > 0) {
      this.#later(job, {
        failed: 'full',
        message: `${this.#waiting} texts wait for preprocessing already`,
      });
    } else if (left === 0) this.#later(job, { counts: [], ids: [] });
    else {
      this.#waiting += left;
      this.#queues[ask.rank]!.push(job);
      this.#work();
    }
    return () => this.#drop(job);
  }

  /** Ends the threads; what waits is not called back. */
  close(): void {
    for (const { hand } of this.#seats) hand.close();
    this.#seats.length = 0;
  }

  #later(job: Job, result: Tokenized | TokenizeFailure): void {
    this.#timers.set(0, () => this.#end(job, result));
  }

  #end(job: Job, result: Tokenized | TokenizeFailure): void {
    if (job.over) return;
    this.#drop(job);
    job.done(result);
  }

  /** Nothing more of it is begun, and nobody is told. */
  #drop(job: Job): void {
    if (job.over) return;
    job.over = true;
    const queue = this.#queues[job.ask.rank]!;
    const at = queue.indexOf(job);
    if (at < 0) return;
    queue.splice(at, 1);
    this.#waiting -= job.ask.texts.length - job.next;
  }

  #work(): void {
    for (let seat = this.#freeSeat(); seat; seat = this.#freeSeat()) {
      const piece = this.#take();
      if (!piece) return;
      this.#give(seat, piece);
    }
  }

  /** The hand with the least to do. */
  #freeSeat(): Seat | undefined {
    if (this.#waiting === 0 && this.#again.length === 0) return undefined;
    let best: Seat | undefined;
    for (const seat of this.#seats) if (!best || seat.busy < best.busy) best = seat;
    if (best?.busy === 0) return best;
    if (this.#seats.length < this.#settings.threads) {
      best = { hand: this.#hire(), busy: 0 };
      this.#seats.push(best);
    }
    return best && best.busy < CHUNKS_PER_HAND ? best : undefined;
  }

  #dismiss(): void {
    for (let at = this.#seats.length - 1; at >= 0; at--) {
      if (this.#seats.length <= this.#settings.threads) return;
      const seat = this.#seats[at]!;
      if (seat.busy > 0) continue;
      seat.hand.close();
      this.#seats.splice(at, 1);
    }
  }

  #take(): Piece | undefined {
    for (let piece = this.#again.shift(); piece; piece = this.#again.shift()) {
      if (!piece.job.over) return piece;
    }
    const now = this.#clock.mono();
    for (const queue of this.#queues) {
      for (let job = queue[0]; job; job = queue[0]) {
        if (now >= job.ask.deadlineAt) {
          this.#later(job, { failed: 'late', message: 'the deadline passed before it was begun' });
          this.#unqueue(job);
          continue;
        }
        return this.#cut(queue, job);
      }
    }
    return undefined;
  }

  /** Takes a job out of the line, without ending it. */
  #unqueue(job: Job): void {
    this.#queues[job.ask.rank]!.shift();
    this.#waiting -= job.ask.texts.length - job.next;
    job.next = job.ask.texts.length;
  }

  #cut(queue: Job[], job: Job): Piece {
    const { texts } = job.ask;
    const from = job.next;
    let characters = 0;
    let to = from;
    while (to < texts.length && to - from < CHUNK_TEXTS_MAX) {
      characters += texts[to]!.length;
      if (to > from && characters > CHUNK_CHARACTERS_MAX) break;
      to++;
    }
    job.next = to;
    this.#waiting -= to - from;
    queue.shift();
    if (to < texts.length) queue.push(job);
    return { job, from, to, tries: 0 };
  }

  #give(seat: Seat, piece: Piece): void {
    const { tokenizer, texts, specials, want, cutAt } = piece.job.ask;
    const chunk: Chunk = {
      tokenizer: { key: tokenizer.key, path: tokenizer.path },
      texts: texts.slice(piece.from, piece.to),
      specials,
      want,
      cutAt,
    };
    seat.busy++;
    this.#running += chunk.texts.length;
    piece.tries++;
    seat.hand.work(chunk, (result) => {
      seat.busy--;
      this.#running -= chunk.texts.length;
      this.#dismiss();
      this.#took(piece, result);
      this.#work();
    });
  }

  #took(piece: Piece, result: ChunkDone | ChunkFailed): void {
    const { job, from } = piece;
    if (job.over) return;
    if ('failed' in result) {
      if (result.failed === 'died' && piece.tries < TRIES_MAX) this.#again.push(piece);
      else {
        const failed = result.failed === 'unreadable' ? 'unreadable' : 'broken';
        this.#end(job, { failed, message: result.message });
      }
      return;
    }
    let at = 0;
    for (const [index, count] of result.counts.entries()) {
      job.counts[from + index] = count;
      if (job.ask.want === 'ids') job.ids[from + index] = result.ids.subarray(at, (at += count));
    }
    job.left -= result.counts.length;
    if (job.left === 0) this.#end(job, { counts: job.counts, ids: job.ids });
  }
}
