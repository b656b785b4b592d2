/** Entries: 65,536 of 12 bytes for each worker, the engine caches of some ten endpoints. */
const SETS = 16_384;
const WAYS = 4;

/**
 * Which endpoints lately had which beginnings of prompts. A table of fixed size, made when it is first written to: a
 * beginning lies in one of the places of its set, and takes that of the entry that was not used for longest. So nothing
 * grows and nothing is allocated for a request; what is forgotten costs an engine the reading of a prompt.
 */
export class Holders {
  #beginnings = new Uint32Array(0);
  #owners = new Uint32Array(0);
  #used = new Uint32Array(0);
  #tick = 0;

  /** Puts the owners of a beginning into `into`, four at most. Owners are hashes, and never 0. */
  ownersOf(beginning: number, into: number[]): number[] {
    into.length = 0;
    if (this.#owners.length === 0) return into;
    const first = (beginning % SETS) * WAYS;
    for (let at = first; at < first + WAYS; at++) {
      if (this.#beginnings[at] === beginning && this.#owners[at] !== 0) into.push(this.#owners[at]!);
    }
    return into;
  }

  remember(beginnings: Uint32Array, owner: number): void {
    if (this.#owners.length === 0) this.#make();
    this.#tick++;
    for (const beginning of beginnings) {
      const at = this.#placeOf(beginning, owner);
      this.#beginnings[at] = beginning;
      this.#owners[at] = owner;
      this.#used[at] = this.#tick;
    }
  }

  /** Where it is, or the place that is given up for it. */
  #placeOf(beginning: number, owner: number): number {
    const first = (beginning % SETS) * WAYS;
    let oldest = first;
    for (let at = first; at < first + WAYS; at++) {
      if (this.#beginnings[at] === beginning && this.#owners[at] === owner) return at;
      if (this.#used[at]! < this.#used[oldest]!) oldest = at;
    }
    return oldest;
  }

  #make(): void {
    this.#beginnings = new Uint32Array(SETS * WAYS);
    this.#owners = new Uint32Array(SETS * WAYS);
    this.#used = new Uint32Array(SETS * WAYS);
  }
}
