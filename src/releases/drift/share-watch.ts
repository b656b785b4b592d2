import type { Change, Watch } from './contracts.ts';
import { ShareBets, shareBounds } from './share-bets.ts';
import type { StakesState } from './stakes.ts';

/** Watches how often something happens that happened `count` times in the `rows` of the reference. */
export class ShareWatch implements Watch {
  readonly change: Change;
  readonly weight: number;
  readonly #bets: ShareBets;

  constructor(change: Change, weight: number, count: number, rows: number, sides = { less: false }) {
    this.change = change;
    this.weight = weight;
    this.#bets = new ShareBets(shareBounds(count, rows), sides);
  }

  observe(happened: boolean): void {
    this.#bets.observe(happened);
  }

  get evidence(): number {
    return this.#bets.stakes.evidence;
  }

  get since(): number {
    return this.#bets.stakes.since;
  }

  get direction(): string {
    return this.#bets.direction;
  }

  begin(): void {
    this.#bets.stakes.begin();
  }

  toJSON(): StakesState {
    return this.#bets.stakes.toJSON();
  }

  restore(state: StakesState): void {
    this.#bets.stakes.restore(state);
  }
}
