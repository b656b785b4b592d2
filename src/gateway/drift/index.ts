import type { Settings } from '../../config/schema/index.ts';
import { RouteDrift, type RouteDriftDeps } from './route-drift.ts';
import { driftRules } from './rules.ts';

/** What observes answers, by route: kept over swaps, since it knows which sessions were observed. */
export class Drifts {
  readonly #deps: RouteDriftDeps;
  #routes = new Map<string, RouteDrift>();

  constructor(deps: RouteDriftDeps) {
    this.#deps = deps;
  }

  /** By name, those of the routes that are watched. */
  swap(routes: Settings['routes']): ReadonlyMap<string, RouteDrift> {
    const next = new Map<string, RouteDrift>();
    for (const [name, { drift }] of Object.entries(routes)) {
      if (!drift) continue;
      const rules = driftRules(drift);
      const kept = this.#routes.get(name) ?? new RouteDrift(name, rules, this.#deps);
      kept.rules = rules;
      next.set(name, kept);
    }
    this.#routes = next;
    return next;
  }
}
