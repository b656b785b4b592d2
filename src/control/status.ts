import type { Status } from '../api/contracts.ts';
import type { BackendSettings, RouteSettings, Settings } from '../config/schema/index.ts';
import type { HostReading } from '../links/messages.ts';
import type { HostPeer } from './hosts.ts';
import { quotasLeft } from './quota/left.ts';
import type { KnownGauge } from './scraping/engine-gauges.ts';
import { awayOf, type WorkerSaid } from './worker-states.ts';

/** What a status is made of, gathered at one moment. */
export interface Gathered {
  at: string;
  settings: Settings;
  snapshot: Status['snapshot'];
  configuration: Omit<Status['configuration'], 'gateway' | 'admin'>;
  /** Connected workers, with their state where they gave one in time. */
  workers: WorkerSaid[];
  hosts: readonly HostPeer[];
  /** How the hosts of ours stand, by backend. */
  standings: Record<string, HostReading>;
  endpoints: Record<string, string[]>;
  /** By `BACKEND|ADDRESS`, what probes say. */
  health: Record<string, 'well' | 'unwell'>;
  /** What control knows to be there of tenants' rates. */
  rates: ReadonlyMap<string, number>;
  /** By `BACKEND|ADDRESS`, what engines tell of their own load. */
  gauges: Record<string, KnownGauge>;
  releases: Status['releases'];
  ledger: Status['ledger'] & { trouble: string | undefined; lost: number };
}

type Endpoint = Status['backends'][number]['endpoints'][number];
type Trouble = Status['trouble'][number];

/** From the best to the worst: what several workers and the probes say becomes the last of these. */
const STATES: readonly Endpoint['state'][] = ['unknown', 'well', 'half-open', 'cooling', 'open', 'unwell'];

/** Puts everything into the one form that the API, the page and the command line show. */
export function statusOf(gathered: Gathered): Status {
  const { at, settings, snapshot, configuration, ledger } = gathered;
  const { trouble: _trouble, lost: _lost, ...extent } = ledger;
  const status: Status = {
    at,
    trouble: [],
    snapshot,
    configuration: { ...configuration, gateway: urlOf(settings.gateway), admin: urlOf(settings.admin) },
    workers: workersOf(gathered),
    routes: Object.entries(settings.routes).map(([name, route]) => routeOf(name, route, gathered)),
    releases: gathered.releases,
    pipelines: Object.entries(settings.pipelines).map(([name, { stages }]) => ({
      pipeline: name,
      ready: isReady(name, gathered),
      stages: Object.keys(stages),
    })),
    backends: Object.entries(settings.backends).map(([name, backend]) => backendOf(name, backend, gathered)),
    quotas: quotasLeft(
      settings,
      gathered.workers.map(({ state }) => state),
      gathered.rates,
    ),
    ledger: extent,
  };
  status.trouble = troublesOf(status, gathered);
  return status;
}

/** Where a listener is reached, such as `http://127.0.0.1:7070`. */
function urlOf({ listen, tls }: { listen: string; tls?: unknown }): string {
  return `${tls ? 'https' : 'http'}://${listen}`;
}

/** A rung in one or two words, as `x-armature-degraded` names it. */
export function rungName(rung: RouteSettings['ladder'][number]): string {
  if ('backend' in rung) return rung.backend;
  if ('output' in rung) return 'output';
  return 'cached' in rung ? 'cached' : 'answer';
}

function workersOf({ settings, workers }: Gathered): Status['workers'] {
  const connected = workers.map(({ peer, state }) => ({
    part: peer.part,
    worker: peer.worker,
    pid: peer.pid,
    state: !state ? ('silent' as const) : state.draining ? ('draining' as const) : ('serving' as const),
    ...(state && { snapshot: state.snapshot }),
    inflight: state?.inflight ?? 0,
    factsWaiting: state?.factsWaiting ?? 0,
  }));
  const peers = workers.map(({ peer }) => peer);
  const missing = awayOf(settings.gateway.workers, peers).map((worker) => ({
    part: `gateway-${worker}`,
    worker,
    state: 'down' as const,
    inflight: 0,
    factsWaiting: 0,
  }));
  return [...connected, ...missing].sort((a, b) => a.worker - b.worker);
}

/** A worker says that it can answer the route or the pipeline. */
function isReady(name: string, { workers }: Gathered): boolean {
  return workers.some(({ state }) => state?.routes.some(({ route, ready }) => route === name && ready));
}

function routeOf(name: string, route: RouteSettings, { workers }: Gathered): Status['routes'][number] {
  const said = workers.flatMap(({ state }) => state?.routes.filter((it) => it.route === name) ?? []);
  return {
    route: name,
    ready: said.some(({ ready }) => ready),
    ...(route.retired && { retired: true as const }),
    waiting: sum(said.map(({ waiting }) => waiting)),
    targets: route.targets.map(({ backend, weight }) => ({ backend, weight })),
    ladder: route.ladder.map(rungName),
  };
}

function backendOf(name: string, backend: BackendSettings, gathered: Gathered): Status['backends'][number] {
  const host = hostOf(name, backend, gathered);
  return {
    backend: name,
    engine: backend.engine,
    model: backend.model,
    hardware: backend.hardware,
    ...(backend.tier !== undefined && { tier: backend.tier }),
    endpoints: (gathered.endpoints[name] ?? []).map((endpoint) => endpointOf(name, endpoint, gathered)),
    ...(host && { host }),
  };
}

function hostOf(
  name: string,
  backend: BackendSettings,
  { hosts, standings }: Gathered,
): Status['backends'][number]['host'] {
  if ('endpoints' in backend) return undefined;
  const host =
    hosts.find((it) => it.backend === name && it.address !== '') ?? hosts.find((it) => it.backend === name);
  const { state, startingMs, expectedMs } = standings[name] ?? {};
  const takes = expectedMs === undefined ? {} : { expectedMs };
  if (state === 'idle') return { backend: name, state, note: '', ...takes };
  const since = startingMs === undefined ? {} : { startingMs };
  if (!host) {
    // One whose process has only just begun has not connected yet.
    const begun = state === 'starting' && startingMs !== undefined && startingMs >= 0;
    return { backend: name, state: begun ? 'starting' : 'down', note: '', ...since, ...takes };
  }
  const serves = host.address !== '';
  const { note, pid } = host;
  return { backend: name, state: serves ? 'serving' : 'starting', note, pid, ...since, ...takes };
}

function endpointOf(backend: string, endpoint: string, { workers, health, gauges }: Gathered): Endpoint {
  const said = workers.flatMap(
    ({ state }) => state?.endpoints.filter((it) => it.backend === backend && it.endpoint === endpoint) ?? [],
  );
  const key = `${backend}|${endpoint}`;
  const probe = health[key] ?? 'unknown';
  const gauge = gauges[key];
  const states: Endpoint['state'][] = [probe, ...said.map(({ state }) => state)];
  const waits = said.flatMap(({ forMs }) => (forMs === undefined ? [] : [forMs]));
  return {
    endpoint,
    state: states.reduce((worst, state) => (STATES.indexOf(state) > STATES.indexOf(worst) ? state : worst)),
    probe,
    inflight: sum(said.map(({ inflight }) => inflight)),
    limit: sum(said.map(({ limit }) => limit)),
    ...(waits.length > 0 && { forMs: Math.max(...waits) }),
    ...(gauge && { engine: gauge }),
  };
}

/** What is wrong now, in words, the worst first. */
function troublesOf(status: Status, { ledger }: Gathered): Trouble[] {
  const troubles: Trouble[] = [];
  const tell = (what: string, subject: string, message: string) =>
    void troubles.push({ what, subject, message });
  for (const { worker, part, state } of status.workers) {
    if (state === 'down') tell('worker-down', `worker:${worker}`, `${part} is not running.`);
    if (state === 'silent')
      tell('worker-silent', `worker:${worker}`, `${part} did not answer within a second.`);
  }
  for (const { route, ready, retired } of status.routes) {
    if (!ready && !retired)
      tell(
        'route-not-ready',
        `route:${route}`,
        `Route ${route} has no endpoint and no rung that can answer.`,
      );
  }
  for (const { id, route, to, stuck } of status.releases) {
    if (stuck !== undefined)
      tell('release-stuck', `release:${id}`, `The release of ${route} to ${to} cannot go on: ${stuck}`);
  }
  for (const { pipeline, ready } of status.pipelines) {
    if (!ready)
      tell(
        'pipeline-not-ready',
        `pipeline:${pipeline}`,
        `Pipeline ${pipeline} has a stage whose route cannot answer, and that has no way out.`,
      );
  }
  for (const { backend, endpoints, host } of status.backends) {
    if (host?.state === 'down')
      tell('host-down', `backend:${backend}`, `The host of backend ${backend} is not running.`);
    if (host?.state === 'starting') {
      const doing = host.note === '' ? '' : `: ${host.note}`;
      tell(
        'host-starting',
        `backend:${backend}`,
        `The host of backend ${backend} does not serve yet${doing}.`,
      );
    }
    for (const { endpoint, state } of endpoints) {
      if (state === 'well' || state === 'unknown') continue;
      tell(
        `endpoint-${state}`,
        `endpoint:${backend}|${endpoint}`,
        `Endpoint ${endpoint} of ${backend} is ${state}.`,
      );
    }
  }
  if (ledger.trouble !== undefined)
    tell('ledger-trouble', 'ledger', `The ledger cannot be written: ${ledger.trouble}.`);
  if (ledger.lost > 0)
    tell('events-lost', 'ledger', `${ledger.lost} events could not be stored and are lost.`);
  const { refused } = status.configuration;
  if (refused) {
    const faults = refused.faults.length === 1 ? '1 fault' : `${refused.faults.length} faults`;
    tell(
      'configuration-refused',
      'configuration',
      `A change of the configuration was refused (${faults}); the one before runs.`,
    );
  }
  return troubles;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
