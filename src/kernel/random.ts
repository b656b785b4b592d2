/** Where chance comes from. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
}

export const systemRandom: Random = { next: () => Math.random() };

/**
 * A seeded generator: the same seed gives the same draws on every machine.
 * Formula: mulberry32 (Tommy Ettinger, public domain), 32 bits of state.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 15), z | 1);
      z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
      return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
    },
  };
}

/** Gives back draws that were recorded, so that a decision can be replayed; throws when asked for more than there are. */
export function replayedRandom(draws: readonly number[]): Random {
  let at = 0;
  return {
    next() {
      const draw = draws[at++];
      if (draw === undefined) throw new Error('the replayed decision drew more often than the recorded one');
      return draw;
    },
  };
}
