import type { Random } from '../kernel/random.ts';

/** Draws that are kept, so that the decision can be replayed. */
export class KeptRandom implements Random {
  readonly draws: number[] = [];
  readonly #random: Random;
  constructor(random: Random) {
    this.#random = random;
  }
  next(): number {
    const draw = this.#random.next();
    this.draws.push(draw);
    return draw;
  }
}
