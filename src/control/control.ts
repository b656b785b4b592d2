import { join } from 'node:path';
import type { ConfigChanged } from '../api/contracts.ts';
import { Blamer } from '../config/blame.ts';
import type { Fault } from '../config/faults.ts';
import type { Settings } from '../config/schema/index.ts';
import type { LedgerService } from '../events/ledger.ts';
import { isAlive } from '../kernel/alive.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { Link, Message } from '../links/link.ts';
import type {
  GatewayToControl,
  HostReading,
  HostToControl,
  PartSpec,
  Readings,
  Snapshot,
  SupervisorToControl,
} from '../links/messages.ts';
import { isHosted, type Place, parts } from '../supervisor/parts.ts';
import type { Logger } from '../telemetry/logger.ts';
import { withAuthors } from './authors.ts';
import { Changes } from './changes.ts';
import type { Effective } from './configuration.ts';
import { type GatewayLink, type GatewayPeer, Gateways } from './gateways.ts';
import type { Guard } from './guards.ts';
import { backendOfPart, HostStandings } from './host-standings.ts';
import { startsOf } from './host-starts.ts';
import { type HostLink, Hosts, type RememberedHost } from './hosts.ts';
import { IdleHosts } from './idle-hosts.ts';
import { liveKeys } from './keys/index.ts';
import { type LeaseService, leaseService } from './leases/service.ts';
import { Health } from './probing/health.ts';
import type { Probe } from './probing/prober.ts';
import { QuotaService } from './quota/service.ts';
import type { ReleaseService } from './releases/service.ts';
import { EngineGauges } from './scraping/engine-gauges.ts';
import type { OpenPage } from './scraping/scraper.ts';
import type { KeptSessions } from './sessions.ts';
import { Siblings } from './siblings.ts';
import { Snapshots } from './snapshots.ts';
import { Turns } from './turns.ts';
import { WorkerMetrics } from './worker-metrics.ts';

export interface ControlOptions {
  place: Place;
  ledger: LedgerService;
  clock: Clock;
  timers: Timers;
  random: Random;
  log: Logger;
  probe: Probe;
  openPage: OpenPage;
  /** Absent where nobody keeps sessions. */
  sessions?: Pick<KeptSessions, 'keep'>;
  /** Absent where nothing is released. */
  releases?: Pick<ReleaseService, 'arms' | 'held' | 'needs' | 'settled'>;
  guard?: Guard;
}

/** Hosts that served before a restart of control and have not connected within this time are not believed any more. */
const HOSTS_BACK_MS = 5000;
const PUBLISH_RETRY_MS = 1000;
/** Causes of one snapshot; the oldest are left out where it has waited for more. */
const CAUSES_MAX = 100;
/** How much longer than they need to drain workers may take to leave. */
const LEAVE_MS = 5000;

/** Holds together what control does: it reads the configuration, publishes snapshots of it, and listens to workers and hosts. */
export class Control {
  readonly gateways: Gateways;
  readonly hosts: Hosts;
  readonly idle: IdleHosts;
  readonly health: Health;
  readonly gauges: EngineGauges;
  readonly metrics: WorkerMetrics;
  readonly snapshots: Snapshots;
  readonly quotas: QuotaService;
  /** Told after each change which parts are wanted. */
  onWant: ((parts: PartSpec[]) => void) | undefined;
  readonly changes: Changes;
  readonly #options: ControlOptions;
  readonly #leases: LeaseService;
  readonly #siblings: Siblings;
  readonly #standings: HostStandings;
  readonly #blamer = new Blamer();
  readonly #turns = new Turns();
  /** Events that the next snapshot follows from. */
  #causes: string[] = [];
  #retry: TimerHandle;
  #hostsBack: TimerHandle;
  #closed = false;

  private constructor(
    options: ControlOptions,
    effective: Effective,
    snapshots: Snapshots,
    hosts: RememberedHost[],
    idle: string[],
  ) {
    const { clock, timers, random, probe, openPage, ledger } = options;
    this.#options = options;
    const { log, place } = options;
    const publish = (causes: string[]) => this.#publishAll(causes);
    const held = (path: string) => options.releases?.held(path);
    const hooks = { publish, held, guard: options.guard };
    this.changes = new Changes({ place, ledger, log, blamer: this.#blamer, ...hooks }, effective);
    this.snapshots = snapshots;
    this.hosts = new Hosts(hosts, {
      onChange: (backend, tookMs) => this.#hostChanged(backend, tookMs),
      onLoading: (backend, upMs) => {
        this.#standings.loading(backend, upMs);
        this.#tellHosts();
      },
    });
    this.#standings = new HostStandings(clock);
    for (const { backend } of hosts) this.#standings.serves(backend, true, undefined);
    this.#siblings = new Siblings(ledger, log);
    const workers = () => this.effective.settings.gateway.workers;
    this.#leases = leaseService({ timers, workers });
    this.quotas = new QuotaService(clock);
    this.gateways = new Gateways(timers, {
      joined: (peer, holdings) => this.#joined(peer, holdings),
      left: (peer) => {
        this.#leases.left(peer);
        this.quotas.left(peer);
        void this.metrics.left(peer);
      },
      parting: (peer, metrics) => this.metrics.parting(peer, metrics),
      facts: (boot, sequence, facts) => ledger.storeFacts(boot, sequence, facts),
      leases: (peer, message) => this.#leases.heard(peer, message),
      quotas: (peer, message) => this.quotas.heard(peer, message),
      wake: (backend, cause) => this.idle.wake(backend, cause),
    });
    this.idle = new IdleHosts(idle, {
      clock,
      timers,
      ledger,
      log,
      gateways: this.gateways,
      standings: this.#standings,
      settings: () => this.effective.settings,
      snapshot: () => this.snapshots.current,
      serves: (backend) => this.hosts.addresses(backend).length > 0,
      needed: (backend) => options.releases?.needs(backend) ?? false,
      changed: (cause) => this.#idleChanged([cause]),
    });
    const file = join(options.place.data, 'run', 'counts.json');
    this.metrics = new WorkerMetrics({ gateways: this.gateways, workers, timers, file, log });
    const tell = (readings: Readings) => this.gateways.broadcast({ type: 'readings', readings });
    const all = { clock, timers, random, ledger, log };
    this.health = new Health({ ...all, probe, tell });
    this.gauges = new EngineGauges({ ...all, open: openPage, tell: (gauges) => tell({ gauges }) });
  }

  /**
   * Begins on a configuration that has been checked; `faults` are those of the files, where it is not what they say now.
   * Rejects with a StoreError where its snapshot cannot be stored.
   */
  static async start(
    options: ControlOptions,
    effective: Effective,
    faults: readonly Fault[] = [],
  ): Promise<Control> {
    const { snapshots, hosts, idle } = await Snapshots.open(options.ledger);
    const alive = hosts.filter(({ pid }) => isAlive(pid));
    const control = new Control(options, effective, snapshots, alive, idle);
    for (const backend of control.#hosted)
      control.#standings.learn(backend, await startsOf(options.ledger, backend));
    if (faults.length > 0) control.changes.refuse(faults);
    else control.changes.keep();
    const last = await options.ledger.store.snapshots.last();
    const causes = last ? await control.changes.changedSince(last.settings as Record<string, unknown>) : [];
    await control.#turns.run(() => control.#publish(causes));
    control.#hostsBack = options.timers.set(HOSTS_BACK_MS, () => control.hosts.forget());
    return control;
  }

  get effective(): Effective {
    return this.changes.current;
  }

  #joined(peer: GatewayPeer, holdings: Record<string, number>): void {
    this.#leases.joined(peer, holdings);
    peer.send({ type: 'snapshot', snapshot: this.snapshots.current });
    const readings = { ...this.health.readings, hosts: this.hostReadings, gauges: this.gauges.fresh };
    peer.send({ type: 'readings', readings });
  }

  /** Undefined while it is not known which of them run. */
  get wantedParts(): PartSpec[] | undefined {
    const { stopped } = this.idle;
    return stopped && parts(this.effective.settings, this.#options.place, stopped);
  }

  /** How the hosts of ours stand. */
  get hostReadings(): Required<Readings>['hosts'] {
    return Object.fromEntries(
      this.#hosted.map((backend) => {
        return [backend, this.#standings.reading(backend, this.#stateOf(backend))];
      }),
    );
  }

  #stateOf(backend: string): HostReading['state'] {
    if (this.idle.has(backend)) return 'idle';
    if (this.hosts.addresses(backend).length > 0) return 'running';
    const fetches = this.hosts.peers.some((peer) => peer.backend === backend && peer.fetching);
    return fetches ? 'fetching' : 'starting';
  }

  get #hosted(): string[] {
    return Object.entries(this.effective.settings.backends).flatMap(([name, backend]) =>
      isHosted(backend) ? [name] : [],
    );
  }

  /** A connection to control's socket: its first message says whose it is. */
  accept(link: Link<GatewayToControl | HostToControl, Message>): void {
    link.onMessage = (message) => {
      if (message.type !== 'hello')
        throw new Error(`a connection began with ${message.type} instead of hello`);
      if (message.role === 'gateway' && 'worker' in message)
        this.gateways.accept(link as GatewayLink, message);
      else if (message.role === 'host' && 'backend' in message) this.hosts.accept(link as HostLink, message);
      else throw new Error(`a ${message.role} has no business at control's socket`);
    };
  }

  /** What the supervisor tells of the other parts. */
  heard(message: SupervisorToControl): void {
    if (message.type === 'parts') {
      this.idle.keptRunning(message.parts);
      this.#idleChanged([]);
      return;
    }
    const event = this.#siblings.heard(message);
    const backend = backendOfPart(message.part, this.#hosted);
    if (backend !== undefined && this.#standings.heard(backend, message, event)) this.#tellHosts();
  }

  /** Reads the file anew; see Changes. Never rejects: what goes wrong is told in the log. */
  async reload(): Promise<void> {
    try {
      await this.#turns.run(() => this.changes.reload());
    } catch (error) {
      this.#options.log.error(
        { err: error },
        'the configuration was read, but what it changes cannot be stored',
      );
    }
  }

  /** Changes values live; see Changes. */
  change(body: string, actor: string): Promise<ConfigChanged> {
    return this.#turns.run(() => this.changes.change(body, actor));
  }

  /** A release moves a route; see Changes. */
  redirect(...args: Parameters<Changes['redirect']>): Promise<void> {
    return this.#turns.run(() => this.changes.redirect(...args));
  }

  /** Keys or arms of releases have changed: gateways learn of it with the snapshot that is published when this resolves. */
  async renewSnapshot(causes: string[]): Promise<void> {
    await this.#turns.run(() => this.#publishAll(causes));
  }

  /** Decides nothing any more, for another control may begin; resolves when no worker is left whose facts it stores. */
  async retire(): Promise<void> {
    this.#closed = true;
    this.health.close();
    this.gauges.close();
    const { drain, drainDelay } = this.effective.settings.gateway;
    await this.gateways.deserted(drain + drainDelay + LEAVE_MS);
  }

  close(): void {
    this.#closed = true;
    this.#options.timers.clear(this.#retry);
    this.#options.timers.clear(this.#hostsBack);
    this.#leases.close();
    this.health.close();
    this.gauges.close();
    this.idle.close();
    this.metrics.close();
  }

  /** Stored first, then told to everybody; nothing where nothing has changed. */
  async #publish(causes: string[]): Promise<void> {
    const { settings, shown, origins, config } = this.effective;
    this.#standings.keep(this.#hosted);
    this.idle.watch(settings);
    const ingredients = {
      settings,
      shown,
      origins,
      keys: await liveKeys(this.#options.ledger.store.keys, settings.tenants),
      endpoints: this.#endpoints(settings),
      certificates: config.certificates,
      hosts: this.hosts.serving,
      idle: this.idle.withheld,
      releases: this.#options.releases?.arms,
    };
    if (this.#closed || !(await this.snapshots.publish(ingredients, causes))) return;
    const snapshot = this.snapshots.current;
    this.quotas.swap(settings.tenants);
    this.#options.log.info({ snapshot: snapshot.number }, 'snapshot published');
    this.gateways.broadcast({ type: 'snapshot', snapshot });
    this.#tellHosts();
    this.health.watch(settings);
    this.gauges.watch(settings, snapshot.endpoints);
    this.#options.ledger.keep({ ageMs: settings.store.keep.age, sizeBytes: settings.store.keep.size });
    this.#options.sessions?.keep(settings.sessions.keep);
    this.#options.releases?.settled();
    this.#options.guard?.settled();
    this.#want();
    // Lines of a file that was refused are not those that run.
    if (this.changes.filesStand) this.#explain(snapshot.number, origins);
  }

  /** Who wrote the lines is found out and added afterwards, so that git makes nobody wait. */
  #explain(number: number, origins: Effective['origins']): void {
    withAuthors(origins, this.#blamer)
      .then((authored) => this.#options.ledger.store.snapshots.explain(number, authored))
      .catch((error: Error) =>
        this.#options.log.warn({ err: error }, 'the authors of the configuration are not kept'),
      );
  }

  #endpoints(settings: Settings): Snapshot['endpoints'] {
    return Object.fromEntries(
      Object.entries(settings.backends).map(([name, backend]) => [
        name,
        isHosted(backend) || !('endpoints' in backend)
          ? this.idle.has(name)
            ? []
            : this.hosts.addresses(name)
          : backend.endpoints,
      ]),
    );
  }

  #hostChanged(backend: string, tookMs: number | undefined): void {
    if (this.#closed) return;
    const addresses = this.hosts.addresses(backend);
    const ready = addresses.length > 0;
    const cause = this.#standings.cause(backend);
    const event = this.#options.ledger.append({
      type: ready ? 'host-ready' : 'host-gone',
      subject: `backend:${backend}`,
      causes: cause === undefined ? [] : [cause],
      data: { addresses, ...(tookMs !== undefined && { tookMs }) },
    });
    if (tookMs !== undefined) this.#standings.learn(backend, [tookMs]);
    if (!this.idle.has(backend)) this.#standings.serves(backend, ready, event.id);
    this.idle.hostChanged(backend);
    this.#tellHosts();
    this.#republish([event.id]);
  }

  /** Which hosts are idle has changed: at once for the workers, and stored for the control that may follow. */
  #idleChanged(causes: string[]): void {
    if (this.#closed) return;
    this.#tellHosts();
    this.#want();
    this.#republish(causes);
  }

  #tellHosts(): void {
    if (!this.#closed) this.gateways.broadcast({ type: 'readings', readings: { hosts: this.hostReadings } });
  }

  #want(): void {
    const wanted = this.wantedParts;
    if (wanted) this.onWant?.(wanted);
  }

  /** In its turn, with the causes that still wait. What cannot be stored now is tried again; rejects with the failure. */
  async #publishAll(causes: string[]): Promise<void> {
    const { log, timers } = this.#options;
    this.#causes = [...this.#causes, ...causes].slice(-CAUSES_MAX);
    timers.clear(this.#retry);
    try {
      await this.#publish(this.#causes);
      this.#causes = [];
    } catch (error) {
      log.warn({ err: error }, 'a snapshot cannot be published; trying again');
      if (!this.#closed) this.#retry = timers.set(PUBLISH_RETRY_MS, () => this.#republish([]));
      throw error;
    }
  }

  #republish(causes: string[]): void {
    // A failure has been told, and is tried again.
    this.#turns.run(() => this.#publishAll(causes)).catch(() => undefined);
  }
}
