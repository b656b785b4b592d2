import { Counter, Gauge, Registry } from 'prom-client';
import { ApiFault, type Config, type Key, type Surface } from '../api/contracts.ts';
import type { LedgerEvent } from '../events/contracts.ts';
import type { LedgerService } from '../events/ledger.ts';
import { type EventsAsked, openEvents, requestRecord } from '../events/reading.ts';
import { nothingKnown, type WhySource, why } from '../events/why.ts';
import type { Clock } from '../kernel/clock.ts';
import { ERRORS, type Failure } from '../kernel/errors.ts';
import type { Ledger } from '../store/contracts.ts';
import type { MetricJson } from '../telemetry/tally.ts';
import type { Control } from './control.ts';
import { decisionsSurface } from './decisions/surface.ts';
import { addDriftMetrics, driftSurface } from './drift/surface.ts';
import type { TenantKeys } from './keys/index.ts';
import type { Planes } from './planes.ts';
import { quotasLeft } from './quota/left.ts';
import type { RegistryService } from './registry/service.ts';
import { registrySurface } from './registry/surface.ts';
import { addReleaseMetrics } from './releases/metrics.ts';
import { newestOfRelease } from './releases/newest.ts';
import { releasesAtAGlance, releasesSurface } from './releases/surface.ts';
import { retirementsSurface } from './retirement/surface.ts';
import { rungName, statusOf } from './status.ts';
import { workerStates } from './worker-states.ts';

/** Events are counted one by one: not at every glance at a page. */
const EXTENT_MS = 5000;

export interface SurfaceOptions extends Omit<Planes, 'guard'> {
  control: Control;
  ledger: LedgerService;
  keys: TenantKeys;
  clock: Clock;
  file: string;
}

/** What the management API shows and does, out of control's parts. */
export function surfaceOf(options: SurfaceOptions): Surface {
  const { control, ledger, keys, sessions, registry, clock, file } = options;
  const extent = remembered(clock, EXTENT_MS, () => ledger.store.ledger.extent());
  const told: WhySource = {
    store: ledger.store,
    find: (id, withinMs) => ledger.find(id, withinMs),
    related: async (subject) => [
      ...(await registry.related(subject)),
      ...(await newestOfRelease(ledger.store, subject)),
    ],
  };
  // Callers know a response by its own id, the ledger by that of its request.
  const whyResponse = async (id: string) => {
    const request = id.startsWith('resp_') ? await sessions.requestOf(id).catch(() => undefined) : undefined;
    return request && why(told, request);
  };
  return {
    ...listsOf(control, registry),
    ...sessions.surface,
    ...planesSurface(options),
    status: async () => statusNow(options, await extent()),
    metrics: async () => control.metrics.exposition(await ownMetrics(options)),
    config: () => configOf(control, file),
    changeConfig: async (body, actor) => {
      const changed = await control.change(body, actor);
      return { snapshot: control.snapshots.current.number, ...changed };
    },
    keys: async () => (await keys.list()) as Key[],
    createKey: async ({ tenant, name }, actor) => orThrow(await keys.create(tenant, name, actor)),
    revokeKey: async (id, actor) => orThrow(await keys.revoke(id, actor)),
    events: (asked) => eventsOf(ledger, asked),
    why: async (id) => {
      const found = (await why(told, id)) ?? (await whyResponse(id));
      if (!found) throw new ApiFault(404, 'not_found', nothingKnown(id));
      return found;
    },
    async request(id) {
      const record = await requestRecord(ledger, id);
      if (!record) throw new ApiFault(404, 'not_found', nothingKnown(id));
      return record;
    },
  };
}

/** What it shows and does of what stands beside control. */
function planesSurface({
  control,
  ledger,
  releases,
  parity,
  drift,
  registry,
  retirements,
  clock,
}: SurfaceOptions) {
  return {
    ...releasesSurface(releases, ledger),
    ...parity.surface,
    ...driftSurface(drift),
    ...retirementsSurface(retirements, clock),
    ...registrySurface(registry.registry, ledger.store.registry, clock),
    ...decisionsSurface(registry, ledger.store, () => control.effective.settings),
  };
}

async function statusNow(
  { control, ledger, releases, clock, file }: SurfaceOptions,
  { events, bytes, oldestMs }: Awaited<ReturnType<Ledger['extent']>>,
) {
  const workers = await workerStates(control.gateways);
  const { number, event, endpoints } = control.snapshots.current;
  const { overlays, notices, restart } = configOf(control, file);
  const { refused } = control.changes;
  const oldest = oldestMs === undefined ? undefined : new Date(oldestMs).toISOString();
  return statusOf({
    at: new Date(clock.wall()).toISOString(),
    settings: control.effective.settings,
    snapshot: { number, event, at: control.snapshots.at },
    configuration: { file, overlays, notices, restart, ...(refused && { refused }) },
    workers,
    hosts: control.hosts.peers,
    standings: control.hostReadings,
    endpoints,
    health: control.health.known,
    rates: control.quotas.levels(),
    gauges: control.gauges.known,
    releases: releasesAtAGlance(releases),
    ledger: {
      events,
      bytes,
      ...(oldest !== undefined && { oldest }),
      trouble: ledger.trouble?.message,
      lost: ledger.lost,
    },
  });
}

function listsOf(
  control: Control,
  registry: RegistryService,
): Pick<Surface, 'routes' | 'backends' | 'tenants' | 'models'> {
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
      Promise.all(
        sorted(control.effective.settings.backends).map(
          async ([name, { engine, model, hardware, tier, limits, timeouts }]) => {
            const version = await registry.served(name);
            return {
              name,
              engine,
              model,
              hardware,
              ...(tier !== undefined && { tier }),
              ...(version && { version }),
              endpoints: control.snapshots.current.endpoints[name] ?? [],
              limits,
              timeoutsMs: timeouts,
            };
          },
        ),
      ),
    tenants: async () => {
      const states = (await workerStates(control.gateways)).map(({ state }) => state);
      const { settings } = control.effective;
      const quotas = quotasLeft(settings, states, control.quotas.levels());
      return sorted(settings.tenants ?? {}).map(([name, { priority, routes, limits }]) => ({
        name,
        priority,
        routes: routes ?? null,
        limits,
        left: quotas.flatMap(({ tenant, ...left }) => (tenant === name ? [left] : [])),
        keys: control.snapshots.current.keys.filter(({ tenant }) => tenant === name).length,
      }));
    },
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

async function eventsOf(ledger: LedgerService, asked: EventsAsked): Promise<AsyncIterable<LedgerEvent>> {
  if (asked.follow && !ledger.followable)
    throw new ApiFault(503, 'overloaded', 'Too many follow the events already.');
  const events = await openEvents(ledger, asked);
  if (!events) throw new ApiFault(400, 'invalid_request', `'${asked.after}' is no id of an event.`);
  return events;
}

/** What control itself counts. */
async function ownMetrics({
  ledger,
  control,
  parity,
  drift,
  releases,
}: SurfaceOptions): Promise<MetricJson[]> {
  const registry = new Registry();
  addReleaseMetrics(registry, releases);
  parity.addMetrics(registry);
  addDriftMetrics(registry, drift);
  const lost = { name: 'armature_ledger_lost_total', help: 'Events of control that could not be stored.' };
  new Counter({ ...lost, registers: [registry] }).inc(ledger.lost);
  const waiting = { name: 'armature_ledger_waiting', help: 'Events of control that wait to be stored.' };
  new Gauge({ ...waiting, registers: [registry] }).set(ledger.waiting);
  const labelNames = ['backend', 'endpoint'];
  const engine = (name: string, help: string) => new Gauge({ name, help, labelNames, registers: [registry] });
  const queued = engine('armature_engine_waiting', 'Requests that wait inside an engine, as it tells.');
  const running = engine('armature_engine_running', 'Requests that an engine works on, as it tells.');
  const stale = engine(
    'armature_engine_gauges_stale',
    "1 where an engine's own gauges cannot be read any more.",
  );
  for (const [key, gauge] of Object.entries(control.gauges.known)) {
    const cut = key.indexOf('|');
    const labels = { backend: key.slice(0, cut), endpoint: key.slice(cut + 1) };
    stale.set(labels, gauge.stale ? 1 : 0);
    if (gauge.stale) continue; // what is not known is not zero
    if (gauge.waiting !== undefined) queued.set(labels, gauge.waiting);
    if (gauge.running !== undefined) running.set(labels, gauge.running);
  }
  return (await registry.getMetricsAsJSON()) as unknown as MetricJson[];
}

function orThrow<Result extends object>(result: Result | Failure): Result {
  if (!('phase' in result)) return result;
  const { code, message } = result;
  throw new ApiFault(ERRORS[code].status as ApiFault['status'], code, message);
}

/** Asks at most once in so many milliseconds, and gives what was answered last in between. */
function remembered<Answer>(clock: Clock, forMs: number, ask: () => Promise<Answer>): () => Promise<Answer> {
  let last: { atMs: number; answer: Promise<Answer> } | undefined;
  return () => {
    const now = clock.mono();
    if (!last || now - last.atMs >= forMs) last = { atMs: now, answer: ask() };
    return last.answer;
  };
}
