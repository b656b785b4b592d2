import { rendezvousScore } from '../kernel/hash.ts';
import type { Endpoint } from './state/endpoint.ts';
import type { Backend, Target } from './state/world.ts';

/** Sequences that are remembered; beyond it the one longest unused is forgotten. */
const SEQUENCES_MAX = 100_000;

interface Place {
  backend: Backend;
  endpoint: Endpoint;
}

/**
 * Where the state of each sequence lies. A new one goes to an endpoint that is well; which one is found by hashing, so
 * that workers agree without talking. A running one never moves: its state is in one endpoint's memory.
 */
export class Sequences {
  readonly #places = new Map<string, string>();

  endpointOf(sequence: string, starts: boolean, targets: readonly Target[], now: number): Place | undefined {
    const places = targets.flatMap(({ backend, weight }) =>
      backend.endpoints.map((endpoint) => ({ backend, endpoint, weight: weight / backend.endpoints.length })),
    );
    const known = this.#places.get(sequence);
    if (known !== undefined && !starts) return places.find(({ endpoint }) => endpoint.key === known);
    // What every worker knows is passed over by all of them alike, so that each finds what another began.
    const well = places.filter(({ endpoint }) => !endpoint.unwell && !endpoint.retired);
    const choice =
      (starts &&
        best(
          sequence,
          well.filter((place) => place.endpoint.waitMs(now) === 0),
        )) ||
      best(sequence, well);
    if (choice) this.#remember(sequence, choice.endpoint.key);
    return choice;
  }

  forget(sequence: string): void {
    this.#places.delete(sequence);
  }

  #remember(sequence: string, key: string): void {
    this.#places.delete(sequence);
    this.#places.set(sequence, key);
    if (this.#places.size > SEQUENCES_MAX) this.#places.delete(this.#places.keys().next().value!);
  }
}

function best(sequence: string, places: (Place & { weight: number })[]): Place | undefined {
  let found: Place | undefined;
  let foundScore = -1;
  for (const place of places) {
    const score = rendezvousScore(sequence, place.endpoint.key, place.weight);
    if (score > foundScore) {
      found = place;
      foundScore = score;
    }
  }
  return found;
}
