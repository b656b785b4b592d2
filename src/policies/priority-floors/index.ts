import type { Decision, Policy } from '../contracts.ts';

/** What each priority that waits has of contested work at least, whatever the settings say. */
export const TRICKLE = 1 / 64;

export interface FloorsInput {
  /** Work of the one whose turn it would be at each priority, highest first; 0 where nobody waits. One at least is above 0. */
  heads: readonly number[];
  /** Share of contested work that each is sure of; see `floorsOf`. */
  floors: readonly number[];
}

/** `choice` was served. */
export interface FloorsServed extends FloorsInput {
  choice: number;
}

/**
 * Whose turn it is when a place comes free: the highest priority's, save where a lower one has had less than its floor of
 * the work that was served while it waited.
 */
export class PriorityFloors implements Policy<FloorsInput, number, FloorsServed> {
  readonly name = 'priority-floors';
  readonly version = 1;
  /** Work that each is owed by its floor; below 0 what it has had ahead of it. */
  readonly #owed: number[] = [];

  decide({ heads, floors }: FloorsInput): Decision<number> {
    const choice = this.choose(heads);
    const highest = heads.findIndex((work) => work > 0);
    const alone = heads.findLastIndex((work) => work > 0) === highest;
    if (choice !== highest) {
      const figures = { floor: floors[choice]!, owedTokens: Math.round(this.#owed[choice]!) };
      return { choice, reason: { code: 'floor', figures, setting: 'gateway.floors' } };
    }
    return { choice, reason: { code: alone ? 'only-priority' : 'highest-priority', figures: {} } };
  }

  /** The choice alone, at no cost of words. */
  choose(heads: readonly number[]): number {
    let highest = -1;
    for (let at = 0; at < heads.length; at++) {
      const work = heads[at]!;
      if (work === 0) continue;
      if (highest < 0) highest = at;
      else if ((this.#owed[at] ?? 0) >= work) return at;
    }
    return highest;
  }

  observe({ heads, floors, choice }: FloorsServed): void {
    const work = heads[choice]!;
    let highest = true;
    for (let at = 0; at < heads.length; at++) {
      const owed = this.#owed[at] ?? 0;
      if (heads[at] === 0) {
        // Who does not wait is owed nothing; what it has had ahead stays.
        this.#owed[at] = Math.min(0, owed);
        continue;
      }
      // The highest has all that the floors leave: its own floor is in that.
      const earned = highest || isAlone(heads, at) ? 0 : floors[at]! * work;
      const paid = at !== choice ? 0 : highest ? Math.min(Math.max(0, owed), work) : work;
      this.#owed[at] = owed + earned - paid;
      highest = false;
    }
  }
}

function isAlone(heads: readonly number[], at: number): boolean {
  for (let other = 0; other < heads.length; other++) if (other !== at && heads[other]! > 0) return false;
  return true;
}

/** Floors as they hold: no less than the trickle each, and no more than everything together. */
export function floorsOf(set: readonly number[]): number[] {
  const floors = set.map((share) => Math.max(TRICKLE, share));
  const sum = floors.reduce((a, b) => a + b, 0);
  return sum > 1 ? floors.map((share) => share / sum) : floors;
}
