import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { SessionsStore, Writer } from '../store/sessions.ts';

/** For how long others believe that a line is being written; and how often its writer says so again, milliseconds. */
const LINE_MS = 30_000;
const RENEW_MS = 10_000;

/** By whom a conversation is written: a request of this process. */
export function writerOf(boot: string, request: string, nowMs: number): Writer {
  return { owner: `${boot}/${request}`, pid: process.pid, nowMs, untilMs: nowMs + LINE_MS };
}

/** A conversation that one request writes: held until it is given back, or until the process is gone. */
export class HeldLine {
  readonly owner: string;
  readonly #store: SessionsStore;
  readonly #timers: Timers;
  readonly #id: string;
  readonly #renewed: () => Writer;
  #timer: TimerHandle;
  #state: 'held' | 'storing' | 'over' = 'held';

  /** It has been taken. `renewed` says who writes it, as of now. */
  constructor(store: SessionsStore, timers: Timers, id: string, renewed: () => Writer) {
    this.#store = store;
    this.#timers = timers;
    this.#id = id;
    this.#renewed = renewed;
    this.owner = renewed().owner;
    this.#beat();
  }

  #beat(): void {
    this.#timer = this.#timers.set(RENEW_MS, () => {
      this.#beat();
      // Where that fails another may take it in the end, and this one's turn is refused then.
      this.#store.renewLine({ id: this.#id, ...this.#renewed() }).catch(() => undefined);
    });
  }

  /** Its turn is being kept, which gives it back: the end of the request does not. */
  storing(): void {
    this.#state = 'storing';
  }

  /** The request is over. */
  leave(): void {
    if (this.#state === 'held') this.giveBack();
  }

  /** It was given back with its turn. */
  kept(): void {
    this.#state = 'over';
    this.#timers.clear(this.#timer);
  }

  giveBack(): void {
    if (this.#state === 'over') return;
    this.kept();
    // Where that fails it is free once its time is over.
    this.#store.releaseLine({ id: this.#id, owner: this.owner }).catch(() => undefined);
  }
}
