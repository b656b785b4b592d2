import type { Settings } from '../config/schema/index.ts';
import type { LedgerService } from '../events/ledger.ts';
import type { Clock } from '../kernel/clock.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { Snapshot, WorkerState } from '../links/messages.ts';
import { hostPart, isHosted } from '../supervisor/parts.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Gateways } from './gateways.ts';
import type { HostStandings } from './host-standings.ts';
import { hearWorkers } from './worker-states.ts';

export interface IdleHostsOptions {
  clock: Clock;
  timers: Timers;
  ledger: LedgerService;
  log: Logger;
  gateways: Pick<Gateways, 'peers' | 'ask'>;
  standings: HostStandings;
  settings: () => Settings;
  /** The newest snapshot. */
  snapshot: () => Snapshot;
  /** Whether the host serves now. */
  serves: (backend: string) => boolean;
  /** Whether it runs on though nobody asks for it, as a release may need it at any moment. */
  needed: (backend: string) => boolean;
  /** The hosts that are idle have changed: workers are to be told, and the supervisor where it is to start or to stop one. */
  changed: (cause: string) => void;
}

/** How soon workers that still have requests there are asked again: twice as late each time, up to the longest. */
const EMPTY_MS = 100;
const EMPTY_MS_MAX = 1000;
/** How soon those that did not answer are. */
const SILENT_MS = 1000;

interface Idle {
  /** `emptying`: workers send it nothing any more, and it runs until what they sent has ended. */
  phase: 'emptying' | 'stopped';
  event: string | undefined;
}

/**
 * Hosts that are stopped when nobody has asked for them for `host.idleStop`, and started again by the next request. Nobody
 * is lost: first the workers let go of the endpoint, then, when each of them has said that nothing is in flight there, the
 * supervisor stops the process.
 */
export class IdleHosts {
  readonly #options: IdleHostsOptions;
  readonly #idle = new Map<string, Idle>();
  readonly #timers = new Map<string, { handle: TimerHandle; idleStop: number | undefined }>();
  /** What an earlier control left, or another supervisor may have started: believed until it has said what it keeps running. */
  #unconfirmed: boolean;
  #closed = false;

  constructor(remembered: readonly string[], options: IdleHostsOptions) {
    this.#options = options;
    for (const backend of remembered) this.#idle.set(backend, { phase: 'stopped', event: undefined });
    this.#unconfirmed = remembered.length > 0;
  }

  /** Workers send nothing to these. */
  get withheld(): string[] {
    return [...this.#idle.keys()];
  }

  /** These need not run. Undefined while it is not known what runs: nothing may be asked of the supervisor then. */
  get stopped(): string[] | undefined {
    if (this.#unconfirmed) return undefined;
    return [...this.#idle].flatMap(([backend, { phase }]) => (phase === 'stopped' ? [backend] : []));
  }

  has(backend: string): boolean {
    return this.#idle.has(backend);
  }

  /** A supervisor has connected, and is about to say what it keeps running. */
  supervisorUp(): void {
    this.#unconfirmed = this.#idle.size > 0;
  }

  /** The supervisor tells which parts it keeps running: a host among them was woken by the control before this one. */
  keptRunning(parts: readonly string[]): void {
    this.#unconfirmed = false;
    for (const [backend, { phase }] of this.#idle) {
      if (phase === 'stopped' && parts.includes(hostPart(backend))) this.#forget(backend);
    }
  }

  /** From now on these settings hold. */
  watch(settings: Settings): void {
    for (const backend of this.#idle.keys()) {
      if (idleStopOf(settings, backend) === undefined) this.#forget(backend);
    }
    for (const backend of new Set([...this.#timers.keys(), ...Object.keys(settings.backends)])) {
      if (this.#timers.get(backend)?.idleStop === idleStopOf(settings, backend) || this.has(backend))
        continue;
      this.#disarm(backend);
      this.#arm(backend, 0);
    }
  }

  /** The host has come to serve, or is gone. */
  hostChanged(backend: string): void {
    if (this.has(backend)) return;
    this.#disarm(backend);
    this.#arm(backend, 0);
  }

  /** A request, `cause`, came for it, or a release needs it for the event that is. Only the first that comes wakes it. */
  wake(backend: string, cause: string, release?: string): void {
    const idle = this.#idle.get(backend);
    if (!idle) return;
    this.#forget(backend);
    const causes = [cause, idle.event ?? []].flat();
    const by = release === undefined ? { request: cause } : { release };
    const data = { backend, ...by, stopped: idle.phase === 'stopped' };
    const { id } = this.#options.ledger.append({
      type: 'host-woken',
      subject: `backend:${backend}`,
      causes,
      data,
    });
    this.#options.log.info({ backend, event: id, cause }, 'an idle host is woken');
    // One that was not stopped yet serves on.
    if (idle.phase === 'stopped') this.#options.standings.begins(backend, id);
    else this.#options.standings.serves(backend, true, id);
    this.#options.changed(id);
    this.#arm(backend, 0);
  }

  close(): void {
    this.#closed = true;
    for (const backend of this.#timers.keys()) this.#disarm(backend);
  }

  #forget(backend: string): void {
    this.#idle.delete(backend);
    this.#disarm(backend);
  }

  #disarm(backend: string): void {
    this.#options.timers.clear(this.#timers.get(backend)?.handle);
    this.#timers.delete(backend);
  }

  /** Looks at it when it can have been idle for long enough, if nothing comes from now on. */
  #arm(backend: string, idleMs: number): void {
    const idleStop = idleStopOf(this.#options.settings(), backend);
    if (idleStop === undefined || !this.#options.serves(backend) || this.#idle.has(backend)) return;
    this.#look(backend, Math.max(1, idleStop - idleMs), () => this.#check(backend));
  }

  #look(backend: string, inMs: number, look: () => Promise<void>): void {
    this.#disarm(backend);
    if (this.#closed) return;
    const handle = this.#options.timers.set(inMs, () => {
      look().catch((error: Error) => {
        this.#options.log.error({ err: error, backend }, 'an idle host is not looked at any more');
      });
    });
    this.#timers.set(backend, { handle, idleStop: idleStopOf(this.#options.settings(), backend) });
  }

  async #check(backend: string): Promise<void> {
    const { clock, settings, standings } = this.#options;
    const timer = this.#timers.get(backend);
    const states = await this.#states();
    if (this.#closed || this.#timers.get(backend) !== timer || this.#idle.has(backend)) return;
    const servingAt = standings.servingAt(backend);
    const idleStop = idleStopOf(settings(), backend);
    if (idleStop === undefined) return;
    if (!states || servingAt === undefined) {
      this.#look(backend, SILENT_MS, () => this.#check(backend));
      return;
    }
    const idleMs = Math.min(
      clock.mono() - servingAt,
      ...states.flatMap(({ hosts }) => hosts.filter((it) => it.backend === backend).map(idleMsOf)),
    );
    if (idleMs < idleStop) this.#arm(backend, idleMs);
    else if (this.#options.needed(backend)) this.#arm(backend, 0);
    else this.#stop(backend, idleMs, idleStop);
  }

  #stop(backend: string, idleMs: number, idleStopMs: number): void {
    const { ledger, log, standings, changed } = this.#options;
    const served = standings.cause(backend);
    const { id } = ledger.append({
      type: 'host-idle-stopped',
      subject: `backend:${backend}`,
      causes: served === undefined ? [] : [served],
      data: { backend, idleMs: Math.round(idleMs), idleStopMs, setting: `backends.${backend}.host.idleStop` },
    });
    log.info({ backend, event: id, idleMs }, 'a host is stopped: nobody asks for it');
    this.#idle.set(backend, { phase: 'emptying', event: id });
    standings.serves(backend, false, id);
    changed(id);
    this.#look(backend, EMPTY_MS, () => this.#empty(backend, EMPTY_MS));
  }

  /** Stops it once no worker has anything there, nor can have. */
  async #empty(backend: string, afterMs: number): Promise<void> {
    const idle = this.#idle.get(backend);
    const { number, endpoints } = this.#options.snapshot();
    const withheld = (endpoints[backend] ?? []).length === 0;
    const states = withheld ? await this.#states() : undefined;
    if (this.#closed || !idle || this.#idle.get(backend) !== idle) return; // it was woken meanwhile
    const empty = states?.every(
      ({ snapshot, hosts }) =>
        snapshot >= number && hosts.every((it) => it.backend !== backend || it.inflight === 0),
    );
    if (!empty) {
      const nextMs = states ? Math.min(afterMs * 2, EMPTY_MS_MAX) : SILENT_MS;
      this.#look(backend, nextMs, () => this.#empty(backend, nextMs));
      return;
    }
    idle.phase = 'stopped';
    this.#disarm(backend);
    this.#options.changed(idle.event!);
  }

  /** What every worker says; undefined where one of them did not, or is away and may still use what it knew last. */
  async #states(): Promise<WorkerState[] | undefined> {
    const { gateways, settings } = this.#options;
    const { states, away, silent } = await hearWorkers(gateways, settings().gateway.workers);
    return away.length + silent.length > 0 ? undefined : states;
  }
}

function idleMsOf({ inflight, idleMs }: WorkerState['hosts'][number]): number {
  return inflight > 0 ? 0 : idleMs;
}

function idleStopOf(settings: Settings, name: string): number | undefined {
  const backend = settings.backends[name];
  return backend && isHosted(backend) ? backend.host.idleStop : undefined;
}
