/** What is done for one item; gives back how to leave it. `done` may be called before it returns. */
export type StartOne<Result> = (index: number, done: (result: Result) => void) => () => void;

export const CONCURRENCY_USUAL = 4;

/**
 * Does the same for each item of a list, a few at once, in the order of the list. It ends when all are done, or when it is cut;
 * what an item came to stands at its own place.
 */
export class FanOut<Result> {
  readonly results: (Result | undefined)[];
  readonly #concurrency: number;
  readonly #start: StartOne<Result>;
  readonly #over: () => void;
  readonly #running = new Map<number, () => void>();
  #next = 0;
  #done = 0;
  #ended = false;
  #starting = false;

  /** `over` is called once, when every item is done; never after `cut`. */
  constructor(count: number, concurrency: number, start: StartOne<Result>, over: () => void) {
    this.results = new Array<Result | undefined>(count).fill(undefined);
    this.#concurrency = concurrency;
    this.#start = start;
    this.#over = over;
  }

  /** How many are being done now. */
  get running(): number {
    return this.#running.size;
  }

  start(): void {
    this.#fill();
  }

  /** Leaves what is being done, and begins nothing more. */
  cut(): void {
    this.#ended = true;
    const leaves = [...this.#running.values()];
    this.#running.clear();
    for (const leave of leaves) leave();
  }

  /** Begins as many as there is room for. An item may be done at once: then the loop goes on, and nothing grows deeper. */
  #fill(): void {
    if (this.#starting) return;
    this.#starting = true;
    while (!this.#ended && this.#running.size < this.#concurrency && this.#next < this.results.length) {
      this.#begin(this.#next++);
    }
    this.#starting = false;
    if (this.#ended || this.#done < this.results.length) return;
    this.#ended = true;
    this.#over();
  }

  #begin(index: number): void {
    let isDone = false;
    this.#running.set(index, nothing);
    const leave = this.#start(index, (result) => {
      if (isDone || this.#ended) return;
      isDone = true;
      this.results[index] = result;
      this.#running.delete(index);
      this.#done++;
      this.#fill();
    });
    if (isDone) return;
    if (this.#ended)
      leave(); // cut while it began
    else this.#running.set(index, leave);
  }
}

function nothing(): void {}
