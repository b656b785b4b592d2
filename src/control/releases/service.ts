import { readPath } from '../../config/places.ts';
import { targetsPath, writtenTargets } from '../../config/redirect.ts';
import { type ReleaseSettings, releaseSchema } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import { pause, type Timers } from '../../kernel/timers.ts';
import type { Snapshot } from '../../links/messages.ts';
import type { Gate } from '../../releases/contracts.ts';
import type { StoredDocument } from '../../store/contracts.ts';
import { everyDocument } from '../../store/every-document.ts';
import type { Logger } from '../../telemetry/logger.ts';
import {
  RELEASE_KIND,
  type ReleaseControl,
  type ReleaseDocument,
  type ReleaseMachines,
} from './contracts.ts';
import { Judge } from './judge.ts';
import { KeptRelease } from './kept.ts';
import { planOf } from './plans.ts';
import { conflict, refuseImpossible } from './refusals.ts';
import { ReleaseRun } from './run.ts';
import { neededBackends } from './slices.ts';

export interface ReleaseServiceOptions {
  ledger: LedgerService;
  clock: Clock;
  timers: Timers;
  random: Random;
  log: Logger;
  machines: ReleaseMachines;
  gates: readonly Gate[];
  /** The version that a backend serves, and the events that tell of it; undefined where none is named. */
  versionOf?: (backend: string) => Promise<{ version?: string; events: string[] } | undefined>;
}

/** What is asked for when a release is started; settings that are not given are the route's. */
export interface ReleaseAsked {
  route: string;
  to: string;
  settings: Partial<ReleaseSettings>;
}

/** Releases under way at one time. */
const RUNNING_MAX = 200;
/** Releases that are kept, those that have ended included; beyond it the oldest ended ones go. */
const KEPT_MAX = 2000;
const FOLLOW_RETRY_MS = 1000;

/** The releases of this Armature: begun, followed through the ledger, and gone on with after a restart of control. */
export class ReleaseService {
  readonly #options: ReleaseServiceOptions;
  readonly #makeId: (wallMs: number) => string;
  readonly #runs = new Map<string, ReleaseRun>();
  /** Routes of which a release is being begun. */
  readonly #beginning = new Set<string>();
  readonly #closing = new AbortController();
  #control: ReleaseControl | undefined;
  #following: AbortController | undefined;

  private constructor(options: ReleaseServiceOptions) {
    this.#options = options;
    this.#makeId = idMaker('rel', options.random);
  }

  /** Reads what an earlier control left; nothing goes on before `begin`. */
  static async open(options: ReleaseServiceOptions): Promise<ReleaseService> {
    const service = new ReleaseService(options);
    const { documents } = options.ledger.store;
    for await (const { id, body, revision } of everyDocument(documents, RELEASE_KIND)) {
      const release = body as ReleaseDocument;
      if (release.machine && !release.ended) service.#add(new KeptRelease(documents, id, release, revision));
    }
    return service;
  }

  begin(control: ReleaseControl): void {
    this.#control = control;
    for (const run of this.#runs.values()) run.begin(control);
    this.#follow();
  }

  close(): void {
    this.#closing.abort();
    this.#following?.abort();
    for (const run of this.#runs.values()) run.close();
  }

  /** How sessions of routes under release are divided; undefined where none is. */
  get arms(): Snapshot['releases'] {
    const arms = this.running.flatMap((run) => {
      const divided = run.arms;
      return divided ? [[run.kept.body.route, divided] as const] : [];
    });
    return arms.length === 0 ? undefined : Object.fromEntries(arms);
  }

  /** Oldest first. */
  get running(): ReleaseRun[] {
    return [...this.#runs.values()];
  }

  /** Whether a release under way may need the backend at any moment. */
  needs(backend: string): boolean {
    return this.running.some((run) => neededBackends(run.kept.body).includes(backend));
  }

  /** A snapshot was published. */
  settled(): void {
    for (const run of this.running) run.settled();
  }

  /** Why a value may not be changed by hand now. */
  held(path: string): string | undefined {
    const [section, route, key] = readPath(path) ?? [];
    if (section !== 'routes' || key !== 'targets') return undefined;
    const run = this.running.find(({ kept }) => kept.body.route === route);
    if (!run) return undefined;
    return `${targetsPath(String(route))} belongs to the release ${run.id} while it is under way: abort or promote it first.`;
  }

  /** Begins a release; throws an ApiFault that says why it cannot be. It is stored before it acts. */
  async start(asked: ReleaseAsked, actor: string): Promise<ReleaseRun> {
    const { route } = asked;
    const control = this.#control!;
    const { settings, files } = control.effective;
    const release = { ...(settings.routes[route]?.release ?? releaseSchema.parse({})), ...asked.settings };
    refuseImpossible({ ...asked, settings: release }, settings);
    const other = this.#onRoute(route);
    if (other)
      throw conflict(`The release ${other.id} of '${route}' to '${other.kept.body.to}' is under way.`);
    if (this.#beginning.has(route)) throw conflict(`A release of '${route}' is being begun.`);
    if (this.#runs.size + this.#beginning.size >= RUNNING_MAX)
      throw conflict(`${RUNNING_MAX} releases are under way, which is the most.`);
    this.#beginning.add(route);
    try {
      const run = await this.#begun(asked, release, writtenTargets(files, route), actor);
      run.begin(control);
      this.#follow();
      await this.#forgetOld();
      return run;
    } finally {
      this.#beginning.delete(route);
    }
  }

  /** A release under way, by its id or its route. */
  find(idOrRoute: string): ReleaseRun | undefined {
    return this.#runs.get(idOrRoute) ?? this.#onRoute(idOrRoute);
  }

  isRoute(name: string): boolean {
    return Object.hasOwn(this.#control!.effective.settings.routes, name);
  }

  #onRoute(route: string): ReleaseRun | undefined {
    return this.running.find(({ kept }) => kept.body.route === route);
  }

  async #begun(
    { route, to }: ReleaseAsked,
    release: ReleaseSettings,
    written: unknown,
    actor: string,
  ): Promise<ReleaseRun> {
    const { ledger, clock, machines, gates } = this.#options;
    const { effective, snapshots } = this.#control!;
    const nowMs = clock.wall();
    const id = this.#makeId(nowMs);
    const stress = release.stress && { stress: release.stress };
    const asked = { release: id, route, backend: to, ...stress };
    const plan = planOf(
      asked,
      release,
      gates.filter((gate) => gate.applies(asked)).map(({ name }) => name),
    );
    const captured = structuredClone(effective.settings.routes[route]!.targets);
    const compare = release.compare && { compare: release.compare };
    const served = await this.#options.versionOf?.(to);
    const event = ledger.event({
      type: 'release-started',
      subject: `release:${id}`,
      actor,
      causes: served?.events ?? [],
      data: {
        route,
        to,
        ...(served?.version !== undefined && { version: served.version }),
        plan: plan.plan,
        ...(plan.shadow && { shadowPercent: plan.shadow.percent }),
        deadlineMs: plan.deadlineMs,
        alpha: plan.alpha,
        gates: plan.gates,
        captured,
        setting: `routes.${route}.release`,
        snapshot: snapshots.current.number,
      },
    });
    const body: ReleaseDocument = {
      route,
      to,
      ...(release.baseline !== undefined && { baseline: release.baseline }),
      startedBy: actor,
      startedAt: event.at,
      started: event.id,
      plan,
      ...(plan.shadow && { shadow: { percent: plan.shadow.percent, ...compare } }),
      ...stress,
      captured,
      written,
      position: await ledger.store.ledger.head(),
      machine: machines.begin(plan, nowMs).state,
      share: 0,
      newest: event.id,
    };
    const kept = new KeptRelease(ledger.store.documents, id, body, 0);
    await kept.store({}, [event]);
    this.#options.log.info({ release: id, event: event.id, route, to, actor }, 'a release is begun');
    return this.#add(kept);
  }

  #add(kept: KeptRelease): ReleaseRun {
    const { machines, gates, ledger, clock, timers, log } = this.#options;
    const judge = judgeOf(kept.body, machines, { clock, log });
    const onEnd = () => {
      this.#runs.delete(kept.id);
      if (this.#runs.size === 0) {
        this.#following?.abort();
        this.#following = undefined;
      }
    };
    const run = new ReleaseRun({ kept, judge, gates, ledger, clock, timers, log, onEnd });
    this.#runs.set(kept.id, run);
    return run;
  }

  /** One follower for all of them, while there are any. */
  #follow(): void {
    if (this.#following || this.#runs.size === 0 || this.#closing.signal.aborted) return;
    const following = new AbortController();
    this.#following = following;
    void this.#followAll(following.signal);
  }

  async #followAll(signal: AbortSignal): Promise<void> {
    const { ledger, log, timers } = this.#options;
    while (!signal.aborted) {
      const after = Math.min(...this.running.map(({ position }) => position));
      try {
        for await (const { position, event } of ledger.followStored({
          after,
          type: 'evidence-gathered',
          signal,
        }))
          this.#runs.get(String(event.data.release))?.evidence(position, event);
      } catch (error) {
        log.warn({ err: error }, 'evidence of releases cannot be read; trying again');
      }
      if (!signal.aborted) await pause(timers, FOLLOW_RETRY_MS);
    }
  }

  /** Newest first, those that have ended included. */
  async all(): Promise<{ id: string; body: ReleaseDocument }[]> {
    const all: { id: string; body: ReleaseDocument }[] = [];
    const { documents } = this.#options.ledger.store;
    for await (const { id, body } of everyDocument(documents, RELEASE_KIND))
      all.push({ id, body: body as ReleaseDocument });
    return all.reverse();
  }

  async #forgetOld(): Promise<void> {
    const { documents } = this.#options.ledger.store;
    const ended: StoredDocument[] = [];
    let count = 0;
    for await (const document of everyDocument(documents, RELEASE_KIND)) {
      count++;
      if ((document.body as ReleaseDocument).ended) ended.push(document);
    }
    const old = ended.slice(0, Math.max(0, count - KEPT_MAX));
    if (old.length > 0)
      await documents.change(
        old.map(({ kind, id, revision }) => ({ kind, id, on: revision })),
        [],
      );
  }
}

/** By the state that was kept; where that cannot be read, as by another release of Armature, there is nothing to judge by. */
function judgeOf(
  { machine, plan, startedAt }: Readonly<ReleaseDocument>,
  machines: ReleaseMachines,
  options: { clock: Clock; log: Logger },
): Judge {
  try {
    return new Judge(machines.restore(machine!), options);
  } catch (error) {
    const fault = `what was kept of it cannot be read: ${(error as Error).message}`;
    options.log.error({ err: error, release: plan.id }, fault);
    return new Judge(machines.begin(plan, Date.parse(startedAt)), { ...options, fault });
  }
}
