import { Stakes } from './stakes.ts';

/** How many times as often something is bet to happen as it did before. */
const MORE = [1.25, 1.5, 2, 3, 5, 8];
const LESS = [0.25, 0.5, 0.75];
/** Of the normal distribution: 99 of 100 references hold the true share within these bounds. */
const Z = 2.576;

/** Wilson's bounds (1927) on the true share of what was seen `count` times in `rows`. */
export function shareBounds(count: number, rows: number): { low: number; high: number } {
  const share = count / rows;
  const middle = share + (Z * Z) / (2 * rows);
  const half = Z * Math.sqrt((share * (1 - share)) / rows + (Z * Z) / (4 * rows * rows));
  const scale = 1 + (Z * Z) / rows;
  return { low: Math.max(0, (middle - half) / scale), high: Math.min(1, (middle + half) / scale) };
}

/**
 * Bets that something happens more often, or less often, than in the reference, in the form of the test of errors
 * between two arms: a bet on r times as often multiplies by r^z / (q r + 1 - q), z = 1 where it happened. Against a true
 * share of at most q (at least q for r below 1) that is fair or worse; q is the bound that the finite reference leaves open.
 */
export class ShareBets {
  readonly stakes: Stakes;
  /** Where the first bet on less stands. */
  readonly #less: number;
  readonly #hit: number[];
  readonly #miss: number[];

  constructor(bounds: { low: number; high: number }, sides: { less: boolean }) {
    const bets = [
      ...MORE.map((ratio) => factors(ratio, bounds.high)),
      ...(sides.less ? LESS.map((ratio) => factors(ratio, bounds.low)) : []),
    ];
    this.#less = MORE.length;
    this.#hit = bets.map(({ hit }) => hit);
    this.#miss = bets.map(({ miss }) => miss);
    this.stakes = new Stakes(bets.length);
  }

  observe(happened: boolean): void {
    const factors = happened ? this.#hit : this.#miss;
    for (let bet = 0; bet < factors.length; bet++) this.stakes.settle(bet, factors[bet]!);
  }

  get direction(): 'more' | 'less' {
    return this.stakes.best < this.#less ? 'more' : 'less';
  }
}

function factors(ratio: number, share: number): { hit: number; miss: number } {
  const all = share * ratio + 1 - share;
  return { hit: ratio / all, miss: 1 / all };
}
