import type { TierRule, TierView } from './rules.ts';

/** A rule that held for its load holds until the load is below this share of it ... */
export const LET_GO_SHARE = 0.75;
/** ... for so long, milliseconds. */
const LET_GO_MS = 2_000;
/** After so long without a request it is judged anew, milliseconds. */
const FORGOTTEN_MS = 10_000;

/** Which rules of a route hold for the load of tiers, without flapping: one number for each rule that names a load. */
export class TierLoads {
  readonly #rules: readonly TierRule[];
  readonly #held: { on: boolean; lowAt: number | undefined }[];
  #seenAt = Number.NEGATIVE_INFINITY;

  constructor(rules: readonly TierRule[]) {
    this.#rules = rules;
    this.#held = rules.map(() => ({ on: false, lowAt: undefined }));
  }

  /** For each rule, whether what it says of load holds; true where it says nothing. */
  read(tiers: readonly TierView[], now: number): boolean[] {
    const forgotten = now - this.#seenAt >= FORGOTTEN_MS;
    this.#seenAt = now;
    return this.#rules.map(({ when }, at) => {
      if (!when.load) return true;
      const state = this.#held[at]!;
      if (forgotten) state.on = false;
      const share = shareOf(when.load, tiers);
      if (share >= 1) {
        state.on = true;
        state.lowAt = undefined;
      } else if (share >= LET_GO_SHARE) state.lowAt = undefined;
      else {
        state.lowAt ??= now;
        if (now - state.lowAt >= LET_GO_MS) state.on = false;
      }
      return state.on;
    });
  }
}

/** The least of the loads over what the rule wants them to be: 1 and more where all of them are reached. */
function shareOf(load: Readonly<Record<string, number>>, tiers: readonly TierView[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const name in load) {
    const tier = tiers.find((each) => each.tier === name);
    least = Math.min(least, tier ? tier.load / load[name]! : 0);
  }
  return least;
}
