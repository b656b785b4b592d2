import { Counter, Gauge, Registry } from 'prom-client';
import { ApiFault, type Config, type EventsAsked, type Key, type Surface } from '../api/contracts.ts';
import type { LedgerEvent } from '../events/contracts.ts';
import type { LedgerService } from '../events/ledger.ts';
import { nothingKnown, why } from '../events/why.ts';
import type { Clock } from '../kernel/clock.ts';
import { ERRORS, type Failure } from '../kernel/errors.ts';
import type { WorkerState } from '../links/messages.ts';
import { EVENTS_PAGE_MAX } from '../store/contracts.ts';
import type { MetricJson } from '../telemetry/tally.ts';
import type { Control } from './control.ts';
import type { TenantKeys } from './keys/index.ts';
import { rungName, statusOf } from './status.ts';

/** How long a worker may take to tell its state. */
const STATE_MS = 1000;
/** How long a record that may be on its way from its worker is waited for. */
const ON_ITS_WAY_MS = 500;

/** What the management API shows and does, out of control's parts. */
export function surfaceOf(options: {
  control: Control;
  ledger: LedgerService;
  keys: TenantKeys;
  clock: Clock;
  file: string;
}): Surface {
  const { control, ledger, keys, clock, file } = options;
  return {
    ...listsOf(control),
    async status() {
      const workers = await Promise.all(
        control.gateways.peers.map(async (peer) => ({
          peer,
          state: (await control.gateways.ask(peer, 'state', STATE_MS)) as WorkerState | undefined,
        })),
      );
      const { number, event, endpoints } = control.snapshots.current;
      const { overlays, notices, restart } = configOf(control, file);
      const { refused } = control.changes;
      const { events, bytes, oldestMs } = await ledger.store.ledger.extent();
      const oldest = oldestMs === undefined ? undefined : new Date(oldestMs).toISOString();
      return statusOf({
        at: new Date(clock.wall()).toISOString(),
        settings: control.effective.settings,
        snapshot: { number, event, at: control.snapshots.at },
        configuration: { file, overlays, notices, restart, ...(refused && { refused }) },
        workers,
        hosts: control.hosts.peers,
        endpoints,
        health: control.prober.readings().health,
        ledger: {
          events,
          bytes,
          ...(oldest !== undefined && { oldest }),
          trouble: ledger.trouble?.message,
          lost: ledger.lost,
        },
      });
    },
    metrics: async () => control.metrics.exposition(await ownMetrics(ledger)),
    config: () => configOf(control, file),
    changeConfig: async (body, actor) => {
      const changed = await control.change(body, actor);
      return { snapshot: control.snapshots.current.number, ...changed };
    },
    keys: async () => (await keys.list()) as Key[],
    createKey: async ({ tenant, name }, actor) => orThrow(await keys.create(tenant, name, actor)),
    revokeKey: async (id, actor) => orThrow(await keys.revoke(id, actor)),
    events: async (asked) => eventsOf(ledger, asked, await placeOf(ledger, asked)),
    why: async (id) => {
      const found = await why(
        { store: ledger.store, find: (event, withinMs) => ledger.find(event, withinMs) },
        id,
      );
      if (!found) throw new ApiFault(404, 'not_found', nothingKnown(id));
      return found;
    },
    async request(id) {
      const found = (await ledger.find(id, ON_ITS_WAY_MS)) ?? (await ledger.store.ledger.requests(id, 1))[0];
      if (!found?.event.type.startsWith('request-')) throw new ApiFault(404, 'not_found', nothingKnown(id));
      return found.event.data as { id: string };
    },
  };
}

function listsOf(control: Control): Pick<Surface, 'routes' | 'backends' | 'tenants' | 'models'> {
  const sorted = <Value>(named: Record<string, Value>) =>
    Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    routes: () =>
      sorted(control.effective.settings.routes).map(
        ([name, { targets, ladder, deadline, queue, affinity, retry }]) => ({
          name,
          targets,
          ladder: ladder.map(rungName),
          deadlineMs: deadline,
          queueMax: queue.max,
          affinity,
          retry,
        }),
      ),
    backends: () =>
      sorted(control.effective.settings.backends).map(
        ([name, { engine, model, hardware, tier, limits, timeouts }]) => ({
          name,
          engine,
          model,
          hardware,
          ...(tier !== undefined && { tier }),
          endpoints: control.snapshots.current.endpoints[name] ?? [],
          limits,
          timeoutsMs: timeouts,
        }),
      ),
    tenants: () =>
      sorted(control.effective.settings.tenants ?? {}).map(([name, { priority, routes, limits }]) => ({
        name,
        priority,
        routes: routes ?? null,
        limits,
        keys: control.snapshots.current.keys.filter(({ tenant }) => tenant === name).length,
      })),
    models: () =>
      sorted(control.effective.settings.models).map(([name, { format, task, from, sha256 }]) => ({
        name,
        format,
        ...(task !== undefined && { task }),
        from,
        ...(sha256 !== undefined && { sha256 }),
        backends: Object.entries(control.effective.settings.backends)
          .filter(([, backend]) => backend.engine === 'local' && backend.model === name)
          .map(([backend]) => backend),
      })),
  };
}

function configOf(control: Control, file: string): Config {
  const { shown, origins, notices, overlays } = control.effective;
  return {
    snapshot: control.snapshots.current.number,
    file,
    settings: shown,
    origins,
    overlays,
    notices,
    restart: control.changes.restart,
  };
}

/** The place in the ledger after which events are wanted. */
async function placeOf(ledger: LedgerService, { after, follow }: EventsAsked): Promise<number> {
  if (follow && !ledger.followable)
    throw new ApiFault(503, 'overloaded', 'Too many follow the events already.');
  if (after === undefined) return 0;
  const position = await ledger.store.ledger.position(after);
  if (position === undefined) throw new ApiFault(400, 'invalid_request', `'${after}' is no id of an event.`);
  return position;
}

/** What is stored, oldest first, a page at a time; then, if asked, what comes. */
async function* eventsOf(
  ledger: LedgerService,
  asked: EventsAsked,
  from: number,
): AsyncGenerator<LedgerEvent> {
  const { limit = Number.POSITIVE_INFINITY, follow } = asked;
  const type = asked.type === undefined ? {} : { type: asked.type };
  const head = await ledger.store.ledger.head();
  let left = limit;
  let after = from;
  for (let full = true; full && left > 0; ) {
    const size = Math.min(left, EVENTS_PAGE_MAX);
    const page = await ledger.store.ledger.events({ ...type, order: 'asc', after, limit: size });
    for (const { event } of page) yield event;
    left -= page.length;
    after = page.at(-1)?.position ?? after;
    full = page.length === size;
  }
  if (!follow || left <= 0) return;
  // A reader that leaves ends the generator, and with it the signal.
  const gone = new AbortController();
  try {
    for await (const event of ledger.follow({ ...type, after: Math.max(after, head), signal: gone.signal })) {
      yield event;
      if (--left <= 0) return;
    }
  } finally {
    gone.abort();
  }
}

/** What control itself counts. */
async function ownMetrics(ledger: LedgerService): Promise<MetricJson[]> {
  const registry = new Registry();
  const lost = { name: 'armature_ledger_lost_total', help: 'Events of control that could not be stored.' };
  new Counter({ ...lost, registers: [registry] }).inc(ledger.lost);
  const waiting = { name: 'armature_ledger_waiting', help: 'Events of control that wait to be stored.' };
  new Gauge({ ...waiting, registers: [registry] }).set(ledger.waiting);
  return (await registry.getMetricsAsJSON()) as unknown as MetricJson[];
}

function orThrow<Result extends object>(result: Result | Failure): Result {
  if (!('phase' in result)) return result;
  const { code, message } = result;
  throw new ApiFault(ERRORS[code].status as ApiFault['status'], code, message);
}
