import type { Figure } from '../../events/contracts.ts';
import type { Decision, Policy } from '../contracts.ts';
import { LET_GO_SHARE } from './loads.ts';
import { ASKED, allows, type Preference, preferences, type TierQuestion, type TierView } from './rules.ts';

export { TierLoads } from './loads.ts';
export type { TierRule, TierView } from './rules.ts';

export interface TierInput extends TierQuestion {
  /** The tier that the request's session belongs to, and the one that answered it last; undefined for none. */
  session: { home: string; at: string } | undefined;
  /** Tiers that this request was turned away from already. */
  left: readonly string[];
}

export interface TierChoice {
  /** Undefined where no endpoint of any tier can be used. */
  tier: string | undefined;
  /** The tier that its session belongs to from now on; another may stand in for it. */
  home: string;
  /** The rule that gives that; undefined where none does. */
  rule: number | undefined;
  /** Why another tier stands in for it; undefined where none does. */
  passed: Passed | undefined;
}

/** It has no place; no endpoint of it can be used; it turned the request away; it is hardly less busy than when it was left. */
export type Passed = 'full' | 'unwell' | 'left' | 'busy';

/** Chooses the tier of a route that a request goes to; a tier that cannot take it is passed over for the next. */
export const tierChoice: Policy<TierInput, TierChoice> = {
  name: 'tier-choice',
  version: 1,
  decide(input: TierInput): Decision<TierChoice> {
    const order = preferences(input);
    const kept = keptFor(input, order[0]!);
    if (kept) toFront(order, kept);
    const home = order[0]!;
    if (isStillBusy(input, home)) toFront(order, { tier: input.session!.at, rule: undefined });
    const open = order.filter(({ tier }) => !input.left.includes(tier));
    const view = ({ tier }: Preference) => viewOf(input, tier);
    const found = open.find((each) => takes(input, each)) ?? open.find((each) => view(each).usable);
    const figures: Record<string, Figure> = { tier: found?.tier ?? null };
    if (home.rule !== undefined) figures['rule'] = home.rule;
    if (input.asked !== undefined) figures['asked'] = input.asked;
    const choice = { tier: found?.tier, home: home.tier, rule: home.rule, passed: undefined };
    if (!found) return { choice, reason: { code: 'no-tier', figures: { tiers: order.length } } };
    if (found.tier === home.tier) {
      const code = kept ? 'tier-kept' : home.rule === undefined ? 'tier-by-order' : 'tier-by-rule';
      return { choice, reason: { code, figures } };
    }
    const passed = whyPassed(input, home.tier);
    figures['wanted'] = home.tier;
    figures['passed'] = passed;
    figures['load'] = Math.round(view(home).load * 100) / 100;
    return { choice: { ...choice, passed }, reason: { code: 'tier-stands-in', figures } };
  },
};

/** A session stays in its tier while a rule allows that, unless it asks for another one. */
function keptFor(input: TierInput, first: Preference): Preference | undefined {
  const { session, rules } = input;
  if (!session || session.home === first.tier) return undefined;
  if (first.rule !== undefined && rules[first.rule]!.tier === ASKED) return undefined;
  const rule = allows(input, session.home);
  return rule === undefined ? undefined : { tier: session.home, rule };
}

/** Another tier stood in for a session's own, to which it goes back once there is room for more than itself. */
function isStillBusy(input: TierInput, home: Preference): boolean {
  const { session, tiers } = input;
  if (!session || session.home !== home.tier || session.at === home.tier) return false;
  const away = tiers.find(({ tier }) => tier === session.at);
  return (away?.usable && away.room && viewOf(input, home.tier).load >= LET_GO_SHARE) === true;
}

/** Whether the tier has a free place, or one that may be waited for. */
function takes(input: TierInput, { tier, rule }: Preference): boolean {
  const { usable, room, waitMs } = viewOf(input, tier);
  if (!usable || room) return usable;
  return rule !== undefined && waitMs !== undefined && waitMs <= input.rules[rule]!.waitMax;
}

function toFront(order: Preference[], preference: Preference): void {
  const at = order.findIndex(({ tier }) => tier === preference.tier);
  if (at >= 0) order.splice(at, 1);
  order.unshift(preference);
}

function whyPassed(input: TierInput, tier: string): Passed {
  if (input.left.includes(tier)) return 'left';
  const { usable, room } = viewOf(input, tier);
  return usable ? (room ? 'busy' : 'full') : 'unwell';
}

function viewOf({ tiers }: TierQuestion, tier: string): TierView {
  return tiers.find((each) => each.tier === tier)!;
}
