import type { Rate } from '../kernel/units.ts';
import type { Settings, TenantSettings } from './schema/index.ts';

/** One rate that a tenant is held to, on all its routes together or on one of them. */
export interface RateLimit {
  /** What control and its workers know it by. */
  key: string;
  tenant: string;
  route: string | undefined;
  kind: 'requests' | 'tokens';
  perSecond: number;
  /** The most that can be had at once. */
  burst: number;
  /** Seconds of the unit that it is written in. */
  perSeconds: number;
  /** The path of the setting. */
  setting: string;
}

/** The most at once of a tenant, on all its routes together or on one of them. */
export interface ConcurrencyLimit {
  /** What its units are leased by; no backend's name begins so. */
  key: string;
  tenant: string;
  route: string | undefined;
  max: number;
  setting: string;
}

/** Everything that one tenant is held to. */
export interface TenantLimits {
  rates: RateLimit[];
  concurrency: ConcurrencyLimit[];
}

type Limits = Pick<TenantSettings['limits'], 'requests' | 'tokens' | 'concurrency'>;

export function limitsOf(tenant: string, { limits }: TenantSettings): TenantLimits {
  const found: TenantLimits = { rates: [], concurrency: [] };
  add(found, tenant, undefined, limits);
  for (const [route, own] of Object.entries(limits.routes)) add(found, tenant, route, own);
  return found;
}

export function rateLimitsOf(tenants: Settings['tenants']): RateLimit[] {
  return Object.entries(tenants ?? {}).flatMap(([name, tenant]) => limitsOf(name, tenant).rates);
}

function add(found: TenantLimits, tenant: string, route: string | undefined, limits: Limits): void {
  const whose = route === undefined ? `|${tenant}` : `|${tenant}|${route}`;
  const path = `tenants.${tenant}.limits${route === undefined ? '' : `.routes.${route}`}`;
  for (const kind of ['requests', 'tokens'] as const) {
    const rate = limits[kind];
    if (!rate) continue;
    const { perSeconds } = rate;
    const setting = `${path}.${kind}`;
    found.rates.push({ key: `${whose}|${kind}`, tenant, route, kind, ...sizeOf(rate), perSeconds, setting });
  }
  if (limits.concurrency === undefined) return;
  const setting = `${path}.concurrency`;
  found.concurrency.push({ key: whose, tenant, route, max: limits.concurrency, setting });
}

/** The amount that is written is also what can be had at once: `60000/min` is 1000 a second, and 60,000 after a pause. */
function sizeOf({ amount, perSeconds }: Rate): { perSecond: number; burst: number } {
  // Below one there would never be enough for anything.
  return { perSecond: amount / perSeconds, burst: amount === 0 ? 0 : Math.max(1, amount) };
}
