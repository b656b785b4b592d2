import { ERRORS, type Failure } from '../kernel/errors.ts';
import type { Caller } from './contracts.ts';
import type { World } from './state/world.ts';

/** The tenant of everybody where no tenants are configured; the listener is on loopback only then. */
const OPEN_TENANT = 'open';

/** Who is calling: the name of a tenant, or why not. */
export function identify(caller: Caller, world: World): string | Failure {
  if (caller.terms) return caller.terms.tenant;
  if (!world.tenants) return OPEN_TENANT;
  const key = presentedKey(caller);
  if (key === undefined) {
    return unauthorized('You did not provide an API key. Send it as `authorization: Bearer KEY`.');
  }
  const tenant = caller.headerCount('authorization') > 1 ? undefined : world.keys.tenantOf(key);
  if (tenant === undefined || !world.tenants.has(tenant)) return unauthorized('Incorrect API key provided.');
  return tenant;
}

/** Whether the tenant may call this route. */
export function mayCall(world: World, tenant: string, route: string): boolean {
  const routes = world.tenants?.get(tenant)?.routes;
  return routes === undefined || routes.includes(route);
}

/** The caller's own id, where it is one line of plain characters. */
export function readRequestId(caller: Caller): string | undefined {
  const id = caller.header('x-request-id');
  return id !== undefined && caller.headerCount('x-request-id') === 1 && /^[\x21-\x7e]{1,256}$/.test(id)
    ? id
    : undefined;
}

function presentedKey(caller: Caller): string | undefined {
  const header = caller.header('authorization');
  const match = header === undefined ? null : /^Bearer +(\S+) *$/i.exec(header);
  return match?.[1];
}

function unauthorized(message: string): Failure {
  return { code: 'unauthorized', message, phase: 'before-queue', status: ERRORS.unauthorized.status };
}
