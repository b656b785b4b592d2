import type { Status } from '../../api/contracts.ts';
import { limitsOf } from '../../config/rate-limits.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { WorkerState } from '../../links/messages.ts';

type Quota = Status['quotas'][number];

/**
 * What tenants may use, and what is left of it. Rates are known by control where workers share them, and by the worker
 * itself where it is the only one; `levels` are control's, by key.
 */
export function quotasLeft(
  { tenants, gateway }: Settings,
  workers: readonly (WorkerState | undefined)[],
  levels: ReadonlyMap<string, number>,
): Quota[] {
  const alone = workers.find((state) => state?.quotas)?.quotas;
  return Object.entries(tenants ?? {}).flatMap(([tenant, settings]) => {
    const { rates, concurrency } = limitsOf(tenant, settings);
    const ofRates = rates.map(({ key, route, kind, burst, perSecond }): Quota => {
      const own = gateway.workers > 1 ? undefined : alone?.rates[key];
      const left = own ?? levels.get(key) ?? burst;
      const fullMs = burst > left ? ((burst - left) / perSecond) * 1000 : 0;
      return {
        tenant,
        route: route ?? null,
        kind,
        max: burst,
        left: Math.floor(left),
        fullMs: Math.ceil(fullMs),
      };
    });
    const ofSlots = concurrency.map(({ key, route, max }): Quota => {
      const used = workers.reduce((sum, state) => sum + (state?.quotas?.slots[key] ?? 0), 0);
      return { tenant, route: route ?? null, kind: 'concurrency', max, left: max - used };
    });
    return [...ofRates, ...ofSlots];
  });
}
