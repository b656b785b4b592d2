import type { Exchange } from '../exchange.ts';

/**
 * Requests that may go upstream together, or share an answer in the air, fail together as well. Of those one at a time counts as
 * evidence, of whichever arm it is: the first that comes while none that counts is under way. So whether a request counts says nothing
 * of its arm, and no failure counts twice; all of them would make that of one full batch of stable outweigh those of many
 * small ones of the canary (decision 24). What is remembered is bounded by the requests that are under way.
 */
export class Company {
  readonly #counted = new Set<string>();

  /** A request comes to those of this key, which are the same for all arms. */
  meets(key: string, x: Exchange): void {
    if (!x.armed) return;
    if (this.#counted.has(key)) {
      x.armed.counts = false;
      return;
    }
    this.#counted.add(key);
    x.scope.add(() => this.#counted.delete(key));
  }
}
