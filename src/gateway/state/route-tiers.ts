import type { RouteSettings } from '../../config/schema/index.ts';
import { TierLoads } from '../../policies/tier-choice/index.ts';

/** The tiers of a route: its rules, and which of them hold for the load now. Shared by all snapshots that say the same. */
export class RouteTiers {
  readonly rules: NonNullable<RouteSettings['tiers']>;
  readonly loads: TierLoads;

  constructor(rules: NonNullable<RouteSettings['tiers']>) {
    this.rules = rules;
    this.loads = new TierLoads(rules);
  }

  says(rules: RouteSettings['tiers']): boolean {
    return JSON.stringify(rules) === JSON.stringify(this.rules);
  }
}

/** What was learned stays while the rules say the same. */
export function tiersOf(
  known: Map<string, RouteTiers>,
  name: string,
  { tiers }: RouteSettings,
): RouteTiers | undefined {
  if (!tiers) return undefined;
  const before = known.get(name);
  if (before?.says(tiers)) return before;
  const made = new RouteTiers(tiers);
  known.set(name, made);
  return made;
}
