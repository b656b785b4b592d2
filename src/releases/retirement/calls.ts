import type { LedgerEvent, Step } from '../../events/contracts.ts';
import type { Caller, Subject } from './contracts.ts';

/** Tenants that are told one by one. */
const TENANTS_MAX = 1_000;

/** Whether an event tells of a request that asked the route, or was sent to the backend. */
export function isCall({ type, data }: LedgerEvent, { kind, name }: Subject): boolean {
  if (kind === 'version') return false;
  if (type === 'requests-grouped') return kind === 'route' && data['route'] === name;
  if (!type.startsWith('request-')) return false;
  if (kind === 'route') return data['route'] === name;
  if (data['backend'] === name) return true;
  const steps = Array.isArray(data['steps']) ? (data['steps'] as Step[]) : [];
  return steps.some(({ what, figures }) => what === 'attempt' && figures['backend'] === name);
}

/** When the request of such an event came, milliseconds since the epoch. */
export function cameAtMs({ type, at, data }: LedgerEvent): number {
  if (type === 'requests-grouped') return Number(data['second']) * 1000;
  return typeof data['wallMs'] === 'number' ? data['wallMs'] : Date.parse(at);
}

/** Who called, out of events in any order. */
export class Callers {
  readonly #tenants = new Map<string, Caller>();

  add(event: LedgerEvent): void {
    const { type, data } = event;
    const tenant = String(data['tenant'] ?? '');
    const grouped = type === 'requests-grouped';
    const requests = grouped ? Number(data['count'] ?? 0) : 1;
    const lastAt = new Date(cameAtMs(event)).toISOString();
    const known = this.#tenants.get(tenant);
    const last = { lastAt, ...(grouped ? {} : { lastRequest: event.id }) };
    if (!known) {
      if (this.#tenants.size < TENANTS_MAX) this.#tenants.set(tenant, { tenant, requests, ...last });
      return;
    }
    known.requests += requests;
    if (lastAt > known.lastAt) Object.assign(known, last);
  }

  /** Whoever called last first. */
  get list(): Caller[] {
    return [...this.#tenants.values()].sort((a, b) => (a.lastAt < b.lastAt ? 1 : -1));
  }
}
