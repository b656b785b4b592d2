import { dialectOf } from '../../backends/register.ts';
import type { BackendSettings, TenantSettings } from '../../config/schema/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { priorities } from '../../kernel/priorities.ts';
import type { Random } from '../../kernel/random.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { Readings, Snapshot } from '../../links/messages.ts';
import { Displacement } from '../../policies/displacement/index.ts';
import { HedgeBudget } from '../../policies/hedge-budget/index.ts';
import { LadderHold } from '../../policies/ladder-hold/index.ts';
import { Holders } from '../../policies/prefix-affinity/holders.ts';
import { floorsOf } from '../../policies/priority-floors/index.ts';
import { RetryBudget } from '../../policies/retry-budget/index.ts';
import { answerRules } from '../answers/rules.ts';
import type { Leases, OpenTransport } from '../contracts.ts';
import type { Drifts } from '../drift/index.ts';
import { prepareRules } from '../preparing/rules.ts';
import type { Quotas } from '../quota/quotas.ts';
import { releaseOf, takenBack } from '../release/route-release.ts';
import { Endpoint, endpointKey } from './endpoint.ts';
import { HostState } from './host-state.ts';
import { KeyRing } from './key-ring.ts';
import { pipelineRoute } from './pipeline-route.ts';
import { isRoomFor } from './room.ts';
import type { Backend, Route, Target } from './route.ts';
import { type RouteTiers, tiersOf } from './route-tiers.ts';
import { SessionPlaces } from './session-places.ts';
import { TargetAges } from './target-ages.ts';
import { shadowsOf, targetsOf } from './targets.ts';
import { UsualTimes } from './usual-times.ts';
import { WaitingLine, type Yielder } from './waiting-line.ts';
import { authHeaders, readTls } from './way-to-backend.ts';

export { type Backend, deadlineSetting, type Route, type Shadow, type Target } from './route.ts';

export interface WorldDeps {
  clock: Clock;
  random: Random;
  timers: Timers;
  leases: Leases;
  quotas: Quotas;
  openTransport: OpenTransport;
  /** Absent where nobody watches for drift. */
  drifts?: Drifts | undefined;
}

/**
 * What a worker decides on: one snapshot at a time, swapped whole. Endpoints, waiting lines and retry budgets are kept
 * by name over swaps, since what was learned of them stays true.
 */
export class World {
  snapshot: Snapshot | undefined;
  routes: ReadonlyMap<string, Route> = new Map();
  /** Pipelines, as routes: they are asked for by the same names, and share none with one. */
  pipelines: ReadonlyMap<string, Route> = new Map();
  backends: ReadonlyMap<string, Backend> = new Map();
  /** Every tier that a backend stands in. */
  tiers: ReadonlySet<string> = new Set();
  tenants: ReadonlyMap<string, TenantSettings> | undefined;
  keys = new KeyRing([]);
  readonly endpoints = new Map<string, Endpoint>();
  /** Which of them lately had which beginnings of prompts. */
  readonly holders = new Holders();
  readonly sessionPlaces = new SessionPlaces();
  readonly quotas: Quotas;
  readonly #deps: WorldDeps;
  readonly #lines = new Map<string, WaitingLine>();
  readonly #ages = new Map<string, TargetAges>();
  readonly #tiers = new Map<string, RouteTiers>();
  readonly #budgets = new Map<string, RetryBudget>();
  readonly #waiting = new Map<string, Displacement<Yielder>>();
  readonly #hedges = new Map<string, HedgeBudget>();
  readonly #holds = new Map<string, LadderHold>();
  readonly #times = new Map<string, UsualTimes>();
  readonly #usualOut = new Map<string, Route['usualOut']>();
  readonly #hosts = new Map<string, HostState>();
  #health: Required<Readings>['health'] = {};
  #causes: Required<Readings>['causes'] = {};
  /** Hosts that are idle. */
  idleHosts = 0;
  /** A request, `cause`, came for a backend whose host is idle. */
  onWake: ((backend: string, cause: string) => void) | undefined;

  /** Called when a snapshot has taken the place of the one before it. */
  readonly onSwapped: (() => void)[] = [];

  constructor(deps: WorldDeps) {
    this.#deps = deps;
    this.quotas = deps.quotas;
    deps.leases.onFree = (key) => {
      if (key.startsWith('|')) {
        this.quotas.freed(key);
        return;
      }
      const backend = this.backends.get(key.slice(0, key.indexOf('|')));
      if (backend) this.wake(backend);
    };
  }

  swap(snapshot: Snapshot): void {
    const { settings } = snapshot;
    const named = new Set<string>();
    const backends = this.#backendsOf(snapshot, named);
    const taken = new Set<string>();
    const routes = this.#routesOf(snapshot, backends, taken);
    this.snapshot = snapshot;
    this.routes = routes;
    this.pipelines = new Map(
      Object.entries(settings.pipelines).map(([name, each]) => [name, pipelineRoute(name, each)]),
    );
    this.backends = backends;
    this.tiers = new Set(Object.values(settings.backends).flatMap(({ tier }) => tier ?? []));
    this.tenants = settings.tenants ? new Map(Object.entries(settings.tenants)) : undefined;
    this.keys = new KeyRing(snapshot.keys);
    this.quotas.swap(settings);
    for (const endpoint of [...this.endpoints.values()]) {
      endpoint.retired = !named.has(endpoint.key);
      this.#forgetIfIdle(endpoint);
    }
    this.#readHealth();
    // Who waits for a canary that was taken back is not kept from those that answer by what may have been its fault.
    for (const name of taken) for (const waiter of this.#lines.get(name)?.clear() ?? []) waiter.onHopeless();
    for (const name of this.#lines.keys()) this.#wakeByName(name);
    this.#forgetNames();
    for (const run of this.onSwapped) run();
  }

  /** `named` is given the keys of their endpoints. */
  #backendsOf(snapshot: Snapshot, named: Set<string>): Map<string, Backend> {
    const { settings } = snapshot;
    const backends = new Map<string, Backend>();
    const floors = floorsOf(priorities.map((priority) => settings.gateway.floors[priority]));
    for (const [name, backend] of Object.entries(settings.backends)) {
      const line = keep(this.#lines, name, () => new WaitingLine());
      line.floors = floors;
      line.kept.share = settings.gateway.floors.critical;
      const endpoints = (snapshot.endpoints[name] ?? []).map((address) =>
        this.#endpoint(name, address, backend),
      );
      for (const endpoint of endpoints) named.add(endpoint.key);
      backends.set(name, {
        name,
        settings: backend,
        dialect: dialectOf(backend.engine),
        model: backend.model,
        endpoints,
        authHeaders: authHeaders(backend),
        line,
        host: 'endpoints' in backend ? undefined : this.#host(name),
      });
    }
    return backends;
  }

  /** `taken` is given the canaries that this snapshot takes back. */
  #routesOf(
    snapshot: Snapshot,
    backends: ReadonlyMap<string, Backend>,
    taken: Set<string>,
  ): Map<string, Route> {
    const { settings } = snapshot;
    const routes = new Map<string, Route>();
    const drifts = this.#deps.drifts?.swap(settings.routes);
    for (const [name, route] of Object.entries(settings.routes)) {
      const ages = keep(this.#ages, name, () => new TargetAges());
      const release = releaseOf(snapshot, name, backends);
      const back = takenBack(this.routes.get(name)?.release, release, route.targets);
      if (back !== undefined) taken.add(back);
      ages.observe(route.targets, snapshot.number, back);
      routes.set(name, {
        name,
        pipeline: undefined,
        settings: route,
        targets: targetsOf(route, backends, ages),
        tiers: tiersOf(this.#tiers, name, route),
        remembers:
          route.tiers !== undefined ||
          release !== undefined ||
          (route.affinity === 'session' && route.targets.length > 1),
        retries: keep(this.#budgets, name, () => new RetryBudget()),
        answers: answerRules(route),
        prepare: prepareRules(route, settings),
        waiting: keep(this.#waiting, name, () => new Displacement<Yielder>(priorities.length)),
        hedges: route.hedge && keep(this.#hedges, name, () => new HedgeBudget()),
        release,
        takenBack: ages.takenBack,
        shadows: shadowsOf(route, backends, snapshot.releases?.[name]),
        drift: drifts?.get(name),
        hold: route.ladder.some((rung) => 'output' in rung)
          ? keep(this.#holds, name, () => new LadderHold())
          : undefined,
        times: keep(this.#times, name, () => new UsualTimes()),
        usualOut: keep(this.#usualOut, name, () => ({ value: undefined, answers: 0 })),
      });
    }
    return routes;
  }

  /** Takes what control has learned; it arrives beside snapshots. */
  read({ health, causes, hosts, gauges }: Readings): void {
    if (health) {
      this.#health = health;
      this.#causes = causes ?? {};
      this.#readHealth();
      for (const backend of this.backends.values()) this.wake(backend);
    }
    if (hosts) this.#readHosts(hosts);
    if (gauges) {
      const now = this.#deps.clock.mono();
      for (const key in gauges) this.endpoints.get(key)?.gauged(gauges[key]!, now);
    }
  }

  #readHealth(): void {
    for (const endpoint of this.endpoints.values()) {
      endpoint.unwell = this.#health[endpoint.key] === 'unwell';
      if (endpoint.unwell) endpoint.cause = this.#causes[endpoint.key] ?? endpoint.cause;
    }
  }

  #readHosts(hosts: Required<Readings>['hosts']): void {
    const now = this.#deps.clock.mono();
    for (const [name, reading] of Object.entries(hosts)) {
      const backend = this.backends.get(name);
      if (!this.#host(name).heard(reading, now) || !backend) continue;
      // Each looks anew whether it has the time for what is expected now; one that finds the host idle wakes it.
      for (const waiter of backend.line.clear()) waiter.onHopeless();
    }
    this.#countIdle();
  }

  #countIdle(): void {
    this.idleHosts = 0;
    for (const { state } of this.#hosts.values()) if (state === 'idle') this.idleHosts++;
  }

  #host(name: string): HostState {
    return keep(this.#hosts, name, () => new HostState(this.#deps.clock.mono()));
  }

  /** A host that is idle is asked for once by this worker, however many need it. */
  wakeHost({ name, host }: Backend, requestId: string): void {
    if (!host || host.wokenFor !== undefined) return;
    host.wokenFor = requestId;
    this.onWake?.(name, requestId);
  }

  /** A connection to the backend's host was refused or broke off: before control tells of it, those who come wait a moment. */
  suspect({ name, host }: Backend): void {
    const forMs = host?.suspect(this.#deps.clock.mono());
    if (forMs !== undefined) this.#deps.timers.set(forMs, () => this.#wakeByName(name));
  }

  /** Gives places to those who wait for the backend, or tells them that there is no hope. */
  wake(backend: Backend): void {
    const { leases } = this.#deps;
    const { line } = backend;
    if (line.length === 0) return;
    const now = this.#deps.clock.mono();
    const usable = backend.endpoints.filter((endpoint) => endpoint.waitMs(now) === 0);
    if (usable.length === 0) {
      if (backend.host?.coming(backend.endpoints.length, now)) return;
      for (const waiter of line.clear()) waiter.onHopeless();
      return;
    }
    line.offer((claim) => isRoomFor(claim, backend, now), now);
    if (line.length === 0) return;
    // Nobody has asked for units yet where they came before the endpoint did, or while its own limit held them back.
    for (const endpoint of usable) if (endpoint.lacksUnit) leases.want(endpoint.key, line.length);
  }

  /** Wakes the backend again when an endpoint that is fenced now may be used. */
  wakeWhenUsable(endpoint: Endpoint): void {
    const waitMs = endpoint.waitMs(this.#deps.clock.mono());
    if (waitMs > 0 && waitMs < Number.POSITIVE_INFINITY) {
      this.#deps.timers.set(waitMs, () => this.#wakeByName(endpoint.backend));
    }
  }

  /** The same targets as the present snapshot has them: their endpoints may have changed, or be gone. */
  present(targets: readonly Target[]): Target[] {
    return targets.flatMap((target) => {
      const backend = this.backends.get(target.name);
      return backend ? [{ ...target, backend }] : [];
    });
  }

  /** A place at the endpoint was given back: somebody who waits may have it, or the endpoint ends. */
  freed(endpoint: Endpoint): void {
    this.#forgetIfIdle(endpoint);
    const backend = this.backends.get(endpoint.backend);
    if (backend) this.wake(backend);
  }

  /** An endpoint that no snapshot names ends with its last request. */
  #forgetIfIdle(endpoint: Endpoint): void {
    if (!endpoint.retired || endpoint.inflight > 0 || this.endpoints.get(endpoint.key) !== endpoint) return;
    this.endpoints.delete(endpoint.key);
    this.#deps.leases.forget(endpoint.key);
    endpoint.transport.close();
  }

  close(): void {
    for (const endpoint of this.endpoints.values()) endpoint.transport.close();
  }

  /** Lets go of what was kept for names that the configuration has no more, so that changes leave nothing behind. */
  #forgetNames(): void {
    for (const [name, line] of this.#lines)
      if (!this.backends.has(name) && line.length === 0) this.#lines.delete(name);
    for (const name of this.#hosts.keys()) if (!this.backends.get(name)?.host) this.#hosts.delete(name);
    this.#countIdle();
    for (const name of this.#ages.keys()) if (!this.routes.has(name)) this.#ages.delete(name);
    for (const name of this.#tiers.keys()) if (!this.routes.get(name)?.tiers) this.#tiers.delete(name);
    for (const name of this.#budgets.keys()) if (!this.routes.has(name)) this.#budgets.delete(name);
    for (const name of this.#holds.keys()) if (!this.routes.get(name)?.hold) this.#holds.delete(name);
    for (const name of this.#hedges.keys()) if (!this.routes.has(name)) this.#hedges.delete(name);
    for (const [name, times] of this.#times)
      if (this.routes.has(name)) times.forget((backend) => this.backends.has(backend));
      else this.#times.delete(name);
    for (const name of this.#usualOut.keys()) if (!this.routes.has(name)) this.#usualOut.delete(name);
    for (const [name, { count }] of this.#waiting)
      if (!this.routes.has(name) && count === 0) this.#waiting.delete(name);
  }

  #wakeByName(name: string): void {
    const backend = this.backends.get(name);
    if (backend) this.wake(backend);
    else for (const waiter of this.#lines.get(name)?.clear() ?? []) waiter.onHopeless();
  }

  #endpoint(backend: string, address: string, settings: BackendSettings): Endpoint {
    const { leases, openTransport, random, timers } = this.#deps;
    const key = endpointKey(backend, address);
    leases.declare(key, settings.limits.concurrency);
    const how = {
      connectMs: settings.timeouts.connect,
      tls: 'tls' in settings && settings.tls ? readTls(settings.tls) : undefined,
    };
    const opened = JSON.stringify(how);
    const open = () => openTransport(new URL(address).origin, how);
    const endpoint = keep(
      this.endpoints,
      key,
      () => new Endpoint(backend, address, opened, open(), leases, random),
    );
    endpoint.adapt(settings.limits);
    endpoint.onGrown ??= () => this.#wakeByName(backend);
    endpoint.onStalled ??= (ms, run) => void timers.set(ms, run);
    if (endpoint.opened !== opened) {
      endpoint.transport.close(); // requests on their way go on
      endpoint.transport = open();
      endpoint.opened = opened;
    }
    return endpoint;
  }
}

function keep<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
