import { Stakes } from './stakes.ts';

/** Shares of the stake that are bet, each on every statement. */
const SHARES = [0.1, 0.25, 0.5, 1];
const STATEMENTS = ['higher', 'lower', 'wider', 'narrower'] as const;

/** By measurement over many references of each size: what 99 of 100 of them stay within. */
const MARGINS = [
  { rows: 500, place: 0.0343, spread: 0.0352 },
  { rows: 1000, place: 0.0262, spread: 0.0272 },
  { rows: 5000, place: 0.0107, spread: 0.0121 },
  { rows: 20_000, place: 0.006, spread: 0.0057 },
];

/** How far the mean of ranks, and of their distances from the middle, may be off for a reference of so many rows. */
export interface Margins {
  place: number;
  spread: number;
}

/**
 * Ranks in a finite reference are not quite even, and what they are off by is paid for by the bets. Between measured sizes
 * along the line of the logarithms, outside by 1 over the root of the rows, as 2.58 / sqrt(12 n) falls.
 */
export function marginsFor(rows: number): Margins {
  const [first, last] = [MARGINS[0]!, MARGINS.at(-1)!];
  const edge = rows <= first.rows ? first : rows >= last.rows ? last : undefined;
  if (edge) {
    const scale = Math.sqrt(edge.rows / rows);
    return { place: edge.place * scale, spread: edge.spread * scale };
  }
  const above = MARGINS.findIndex((each) => each.rows >= rows);
  const [low, high] = [MARGINS[above - 1]!, MARGINS[above]!];
  const at = Math.log(rows / low.rows) / Math.log(high.rows / low.rows);
  const between = (a: number, b: number) => a * (b / a) ** at;
  return { place: between(low.place, high.place), spread: between(low.spread, high.spread) };
}

/**
 * B1: sixteen e-detectors on ranks in a frozen reference. With u the rank, 0 to 1, and v = |2u - 1|, each stakes a share of
 * 0.1, 0.25, 0.5 or 1 on one of: u is high, u is low, v is high (wider), v is low (narrower), less the margin that pays for the reference.
 */
export class RankBets {
  readonly stakes = new Stakes(SHARES.length * STATEMENTS.length);
  readonly #margins: Margins;

  constructor(margins: Margins) {
    this.#margins = margins;
  }

  observe(u: number): void {
    const { place, spread } = this.#margins;
    const off = u - 0.5;
    const wide = Math.abs(2 * u - 1) - 0.5;
    for (let i = 0; i < SHARES.length; i++) {
      const share = SHARES[i]!;
      const first = i * STATEMENTS.length;
      this.stakes.settle(first, 1 + share * (off - place));
      this.stakes.settle(first + 1, 1 + share * (-off - place));
      this.stakes.settle(first + 2, 1 + share * (wide - spread));
      this.stakes.settle(first + 3, 1 + share * (-wide - spread));
    }
  }

  /**
   * What the strongest bet says. What has moved beyond one end of the reference is wide as well: it is told as moved, where the bets
   * on that end have half of the evidence (in logarithms) or more.
   */
  get direction(): (typeof STATEMENTS)[number] {
    const { products, best } = this.stakes;
    const told = STATEMENTS[best % STATEMENTS.length]!;
    if (told !== 'wider') return told;
    const ends = [...products.keys()].filter((bet) => bet % STATEMENTS.length < 2);
    const end = ends.reduce((strongest, bet) => (products[bet]! > products[strongest]! ? bet : strongest));
    return products[end]! ** 2 >= products[best]! ? STATEMENTS[end % STATEMENTS.length]! : told;
  }
}
