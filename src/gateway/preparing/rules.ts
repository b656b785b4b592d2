import { tokenizerOf } from '../../config/prepare-checks.ts';
import type { RouteSettings, Settings } from '../../config/schema/index.ts';

/** How texts of a route are prepared. */
export type PrepareRules = NonNullable<RouteSettings['prepare']> & {
  from: NonNullable<ReturnType<typeof tokenizerOf>>;
};

/** Undefined for a route whose requests go as they are. */
export function prepareRules(route: RouteSettings, settings: Settings): PrepareRules | undefined {
  const from = route.prepare && tokenizerOf(route, settings);
  return from && { ...route.prepare!, from };
}
