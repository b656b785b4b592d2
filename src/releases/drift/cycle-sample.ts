import type { Random } from '../../kernel/random.ts';
import { shuffled } from '../statistics/sampled-texts.ts';
import type { Value } from './contracts.ts';

interface State {
  cycle?: number;
  /** The first cycle began before anybody looked. */
  whole: boolean;
  seen: number;
  values: Value[];
}

/**
 * Traffic that comes and goes with the day is not alike from hour to hour, but from day to day. A sample of each whole cycle,
 * each of its values as likely as any other, is given on at its end, in an order by chance: so it is like the reference,
 * which was made the same way.
 */
export class CycleSample {
  readonly #cycleMs: number;
  readonly #size: number;
  #state: State = { whole: false, seen: 0, values: [] };

  constructor(cycleMs: number, size: number) {
    this.#cycleMs = cycleMs;
    this.#size = size;
  }

  /** Takes a value; gives those of the cycle before where that has ended; the first one is not whole, and is given up. */
  take(value: Value, wallMs: number, random: Random): Value[] | undefined {
    const cycle = Math.floor(wallMs / this.#cycleMs);
    let ended: Value[] | undefined;
    this.#state.cycle ??= cycle;
    if (cycle > this.#state.cycle) {
      if (this.#state.whole) ended = shuffled(this.#state.values, random);
      this.#state = { cycle, whole: true, seen: 0, values: [] };
    }
    const { values } = this.#state;
    const at = Math.floor(random.next() * ++this.#state.seen);
    if (values.length < this.#size) values.push(value);
    else if (at < this.#size) values[at] = value;
    return ended;
  }

  toJSON(): State {
    return this.#state;
  }

  restore(state: State): void {
    this.#state = state;
  }
}
