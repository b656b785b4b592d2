import type { Settings } from '../../config/schema/index.ts';
import type { RetirementPlan, Subject } from '../../releases/retirement/contracts.ts';
import { referencesTo, targetsWith } from '../../releases/retirement/references.ts';
import type { Ledger, StoredKey } from '../../store/contracts.ts';
import { callersSince } from './scan.ts';

/** What a plan is made of beside the subject. */
export interface Planning {
  settings: Settings;
  ledger: Ledger;
  keys: readonly Omit<StoredKey, 'hash'>[];
  /** Releases under way. */
  releases: readonly { id: string; route: string; backends: string[] }[];
  /** Who uses a version, in words. */
  versionUsers: (name: string) => Promise<string[]>;
  /** Callers are looked for in what the ledger has since then, milliseconds since the epoch. */
  sinceMs: number;
}

/** What retiring it would do. Rejects with a StoreError. */
export async function planOf(subject: Subject, planning: Planning): Promise<RetirementPlan> {
  const { settings, ledger, sinceMs } = planning;
  const { kind, name } = subject;
  const { callers, looked } = await callersSince(ledger, subject, sinceMs);
  const references = referencesTo(settings, subject);
  const drains = kind === 'backend' ? targetsWith(settings, name) : {};
  const keys = kind === 'route' ? keysOfNobodyElse(planning, name) : [];
  const blockers = [
    ...references.filter(({ blocks }) => blocks).map(({ path, why }) => `${path} names it: ${why}`),
    ...releasesWith(planning, subject),
    ...(kind === 'version' ? await usersOf(planning, name) : []),
  ];
  const steps = stepsOf(subject, Object.keys(drains), keys.length);
  return { subject, callers, looked, references, drains, keys, steps, blockers };
}

async function usersOf({ versionUsers }: Planning, name: string): Promise<string[]> {
  return (await versionUsers(name)).map((user) => `${user} uses it: retire that, or move it, first`);
}

function releasesWith({ releases }: Planning, { kind, name }: Subject): string[] {
  if (kind === 'version') return [];
  return releases
    .filter(({ route, backends }) => (kind === 'route' ? route === name : backends.includes(name)))
    .map(({ id, route }) => `the release ${id} of '${route}' is under way: abort it, or let it end`);
}

/** Live keys of tenants that may call this route and nothing else. Those of the file are the file's. */
function keysOfNobodyElse({ settings, keys }: Planning, route: string): RetirementPlan['keys'] {
  return keys
    .filter(({ tenant, revokedAt }) => {
      const calls = settings.tenants?.[tenant]?.routes?.includes(route);
      return revokedAt === undefined && calls && !callsElsewhere(settings, tenant, route);
    })
    .map(({ id, tenant }) => ({ id, tenant }));
}

/** Whether a tenant may call anything beside the route. */
export function callsElsewhere({ tenants }: Settings, tenant: string, route: string): boolean {
  const found = tenants?.[tenant];
  return found !== undefined && (found.routes?.some((each) => each !== route) ?? true);
}

function stepsOf({ kind }: Subject, routes: readonly string[], keys: number): string[] {
  const drain = {
    backend:
      routes.length > 0
        ? `its weight becomes 0 in ${routes.map((route) => `'${route}'`).join(', ')}; what runs there ends`
        : 'nothing sends requests there; what runs there ends',
    route: 'it answers nobody any more (404); what runs ends',
    version: 'nothing serves it',
  }[kind];
  const last = {
    backend: 'nothing more: its entry can be taken out of the file',
    route: `live keys of tenants that may call nothing else are revoked, ${keys} in all`,
    version: 'it is archived, restorable',
  }[kind];
  return [
    drain,
    'what the ledger has of it, and what the configuration says, is written into the data directory',
    'it is watched until nobody has called it for the time that is asked',
    `the last step, which cannot be undone: ${last}`,
  ];
}
