import { tooBusy } from './fault.ts';

/**
 * Room for `capacity` requests at once; up to `waitingMax` more wait, in the order in which they came. A caller that
 * leaves while it waits gives up its turn.
 */
export class Places {
  readonly #capacity: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(capacity: number, waitingMax: number) {
    this.#capacity = capacity;
    this.#waitingMax = waitingMax;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves to true with a place, which `release` gives back, or to false when the caller left first. */
  async take(gone: AbortSignal): Promise<boolean> {
    if (gone.aborted) return false;
    if (this.#running < this.#capacity) {
      this.#running++;
      return true;
    }
    if (this.#waiting.length >= this.#waitingMax) throw tooBusy(this.#waitingMax);
    return new Promise((resolve) => {
      const left = () => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        resolve(false);
      };
      const turn = () => {
        gone.removeEventListener('abort', left);
        resolve(true);
      };
      gone.addEventListener('abort', left, { once: true });
      this.#waiting.push(turn);
    });
  }

  /** Hands the place to the next in line. */
  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}
