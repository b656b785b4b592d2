/**
 * E-detectors: products of bets against "nothing has changed", begun anew wherever a product falls below 1 (Shin, Ramdas,
 * Rinaldo, E-detectors, arXiv 2203.03532). Where each bet is fair or worse while nothing changes, an alarm when the mean of
 * the products reaches T comes on average no sooner than after T rows.
 */
export class Stakes {
  /** Products since each was last begun anew. */
  readonly products: Float64Array;
  /** Rows since it was begun anew: about when it began to be so, for the one that has grown most. */
  readonly #rows: Uint32Array;

  constructor(bets: number) {
    this.products = new Float64Array(bets).fill(1);
    this.#rows = new Uint32Array(bets);
  }

  /** Takes what one bet gave for this row: 1 for what was staked. */
  settle(bet: number, factor: number): void {
    const product = this.products[bet]!;
    if (product > 1) this.#rows[bet]!++;
    else this.#rows[bet] = 1;
    this.products[bet] = Math.min(Math.max(product, 1) * factor, PRODUCT_MAX);
  }

  /** The mean of all products: evidence against "nothing has changed". */
  get evidence(): number {
    let sum = 0;
    for (let bet = 0; bet < this.products.length; bet++) sum += this.products[bet]!;
    return sum / this.products.length;
  }

  /** The bet that has grown most. */
  get best(): number {
    let best = 0;
    for (let bet = 1; bet < this.products.length; bet++)
      if (this.products[bet]! > this.products[best]!) best = bet;
    return best;
  }

  /** Rows ago at which what the evidence tells of began, as far as it shows. */
  get since(): number {
    return this.#rows[this.best]!;
  }

  begin(): void {
    this.products.fill(1);
    this.#rows.fill(0);
  }

  toJSON(): StakesState {
    return { products: [...this.products], rows: [...this.#rows] };
  }

  restore({ products, rows }: StakesState): void {
    this.products.set(products);
    this.#rows.set(rows);
  }
}

/** Products are cut off here, far beyond any bar, so that they stay numbers. */
const PRODUCT_MAX = 1e100;

export interface StakesState {
  products: number[];
  rows: number[];
}
