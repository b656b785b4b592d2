/** Entries: 65,536 of 16 bytes for each worker, the engine caches of some ten endpoints. */
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
  /** The beginning that is longer by a block, of the prompt that came last and had one; 0 where none had. */
  #longer = new Uint32Array(0);
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

  /** Whether no prompt went on after this beginning, wherever it was: one that does now is that prompt, grown. */
  isWhole(beginning: number): boolean {
    const first = (beginning % SETS) * WAYS;
    for (let at = first; at < first + WAYS; at++) {
      if (this.#beginnings[at] === beginning && this.#longer[at] !== 0) return false;
    }
    return true;
  }

  remember(beginnings: Uint32Array, owner: number): void {
    if (this.#owners.length === 0) this.#make();
    this.#tick++;
    for (let block = 0; block < beginnings.length; block++) {
      const beginning = beginnings[block]!;
      const at = this.#placeOf(beginning, owner);
      if (this.#beginnings[at] !== beginning || this.#owners[at] !== owner) this.#longer[at] = 0;
      this.#beginnings[at] = beginning;
      this.#owners[at] = owner;
      this.#longer[at] = beginnings[block + 1] ?? this.#longer[at]!;
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
    this.#longer = new Uint32Array(SETS * WAYS);
    this.#used = new Uint32Array(SETS * WAYS);
  }
}
