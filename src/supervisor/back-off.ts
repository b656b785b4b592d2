import type { Random } from '../kernel/random.ts';

const FIRST_MS = 500;
const LAST_MS = 30_000;
/** A part that has lived so long is not one that keeps dying. */
const SETTLED_MS = 60_000;

/**
 * How long to wait before a part that died is started again: not at all the first time, then 0.5 s, doubled up to 30 s, each
 * longer or shorter by up to a fifth so that parts which die together do not start together.
 */
export class BackOff {
  #deaths = 0;

  /** Milliseconds to wait, for a part that lived `livedMs`. */
  next(livedMs: number, random: Random): number {
    if (livedMs >= SETTLED_MS) this.#deaths = 0;
    const deaths = this.#deaths++;
    if (deaths === 0) return 0;
    const waitMs = Math.min(FIRST_MS * 2 ** (deaths - 1), LAST_MS);
    return Math.round(waitMs * (0.8 + 0.4 * random.next()));
  }
}
