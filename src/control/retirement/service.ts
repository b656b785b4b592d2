import { ApiFault } from '../../api/contracts.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { Failure } from '../../kernel/errors.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import {
  RETIREMENT_KIND,
  type RetirementDocument,
  type RetirementPlan,
  type Subject,
} from '../../releases/retirement/contracts.ts';
import type { StoredKey } from '../../store/contracts.ts';
import { everyDocument } from '../../store/every-document.ts';
import { callsElsewhere, type Planning, planOf } from './plans.ts';
import { type RetirementControl, RetirementRun, type RunOptions, TOLD_MS } from './run.ts';

export interface RetirementOptions extends Omit<RunOptions, 'last' | 'usersOf'> {
  random: Random;
  versions: {
    /** `MODEL@NUMBER` of what a text names. Rejects where it names nothing. */
    named(text: string): Promise<string>;
    usersOf(name: string): Promise<string[]>;
    /** Does nothing where it is archived. */
    archive(name: string, actor: string): Promise<void>;
  };
  /** Releases under way. */
  releases: () => Planning['releases'];
}

/** What is told apart once control is up. */
export interface RetirementKeys {
  list(): Promise<Omit<StoredKey, 'hash'>[]>;
  revoke(id: string, actor: string): Promise<unknown | Failure>;
}

export interface Asked {
  name: string;
  kind?: Subject['kind'] | undefined;
  /** Milliseconds before now that callers are looked for in. */
  windowMs: number;
}

/** Retirements: planned, begun, gone on with over restarts, undone, finished. */
export class RetirementService {
  readonly #options: RetirementOptions;
  readonly #makeId: (wallMs: number) => string;
  readonly #runs = new Map<string, RetirementRun>();
  #control: RetirementControl | undefined;
  #keys: RetirementKeys | undefined;

  private constructor(options: RetirementOptions) {
    this.#options = options;
    this.#makeId = idMaker('ret', options.random);
  }

  /** Reads what an earlier control left; nothing goes on before `begin`. */
  static async open(options: RetirementOptions): Promise<RetirementService> {
    const service = new RetirementService(options);
    for await (const { id, body, revision } of everyDocument(options.ledger.store.documents, RETIREMENT_KIND))
      service.#add(id, body as RetirementDocument, revision);
    return service;
  }

  begin(control: RetirementControl, keys: RetirementKeys): void {
    this.#control = control;
    this.#keys = keys;
    for (const run of this.#runs.values()) run.begin(control);
  }

  async close(): Promise<void> {
    for (const run of this.#runs.values()) await run.close();
  }

  /** Newest first. */
  get all(): RetirementRun[] {
    return [...this.#runs.values()].reverse();
  }

  /** Throws an ApiFault where there is none. */
  one(id: string): RetirementRun {
    const run = this.#runs.get(id);
    if (!run) throw new ApiFault(404, 'not_found', `There is no retirement '${id}'.`);
    return run;
  }

  async plan({ name, kind, windowMs }: Asked): Promise<RetirementPlan> {
    const { ledger, clock, releases, versions } = this.#options;
    const { settings } = this.#control!.effective;
    const subject = await this.#subject(name, kind, settings);
    const plan = await planOf(subject, {
      settings,
      ledger: ledger.store.ledger,
      keys: await this.#keys!.list(),
      releases: releases(),
      versionUsers: (version) => versions.usersOf(version),
      sinceMs: clock.wall() - windowMs,
    });
    const running = this.all.find(
      ({ body }) => body.subject.kind === subject.kind && body.subject.name === subject.name && !isOver(body),
    );
    if (running) plan.blockers.push(`the retirement ${running.id} is ${running.body.state}`);
    return plan;
  }

  /** Throws an ApiFault that says what has to be done first. */
  async start(asked: Asked & { watchMs: number }, actor: string): Promise<RetirementRun> {
    const { ledger, clock } = this.#options;
    const plan = await this.plan(asked);
    const { subject, blockers } = plan;
    if (blockers.length > 0)
      throw new ApiFault(
        409,
        'conflict',
        `'${subject.name}' cannot be retired yet: ${blockers.join('; ')}.`,
        blockers,
      );
    const id = this.#makeId(clock.wall());
    const watchMs = Math.max(TOLD_MS, asked.watchMs, longestMs(subject, this.#control!.effective.settings));
    const event = ledger.event({
      type: 'retirement-started',
      subject: `retirement:${id}`,
      actor,
      data: {
        what: subject.kind,
        name: subject.name,
        watchMs,
        callers: plan.callers.length,
        since: plan.looked.since,
        routes: Object.keys(plan.drains),
      },
    });
    const body: RetirementDocument = {
      subject,
      state: 'draining',
      startedBy: actor,
      startedAt: event.at,
      watchMs,
      plan,
      calls: 0,
      newest: event.id,
    };
    await ledger.store.documents.change([{ kind: RETIREMENT_KIND, id, body, on: 0 }], [event]);
    const run = this.#add(id, body, 1);
    run.begin(this.#control!);
    return run;
  }

  /** `kind:NAME`, or a name that only one thing has. */
  async #subject(text: string, kind: Subject['kind'] | undefined, settings: Settings): Promise<Subject> {
    const [, written, rest] = /^(backend|route|version):(.+)$/.exec(text) ?? [];
    const name = rest ?? text;
    const of = kind ?? (written as Subject['kind'] | undefined);
    const found: Subject[] = [];
    if ((of ?? 'backend') === 'backend' && Object.hasOwn(settings.backends, name))
      found.push({ kind: 'backend', name });
    if ((of ?? 'route') === 'route' && Object.hasOwn(settings.routes, name))
      found.push({ kind: 'route', name });
    if (of === 'version' || (of === undefined && name.includes('@'))) {
      const version = await this.#options.versions.named(name);
      found.push({ kind: 'version', name: version });
    }
    if (found.length === 1) return found[0]!;
    const message =
      found.length === 0
        ? `There is no backend, route or version '${text}'.`
        : `'${name}' is a backend and a route: say backend:${name} or route:${name}.`;
    throw new ApiFault(
      found.length === 0 ? 404 : 409,
      found.length === 0 ? 'not_found' : 'conflict',
      message,
    );
  }

  #add(id: string, body: RetirementDocument, revision: number): RetirementRun {
    const run = new RetirementRun(id, body, revision, {
      ...this.#options,
      usersOf: (version) => this.#options.versions.usersOf(version),
      last: (of, actor) => this.#last(of, actor),
    });
    this.#runs.set(id, run);
    return run;
  }

  /** Of the keys that were shown, those whose tenants may still call nothing else are revoked. */
  async #last({ subject, plan }: Readonly<RetirementDocument>, actor: string) {
    const revoked: string[] = [];
    for (const { id, tenant } of plan.keys) {
      if (callsElsewhere(this.#control!.effective.settings, tenant, subject.name)) continue;
      await this.#keys!.revoke(id, actor);
      revoked.push(id);
    }
    const archived = subject.kind === 'version';
    if (archived) await this.#options.versions.archive(subject.name, actor);
    return { keys: revoked, archived };
  }
}

const isOver = ({ state }: Readonly<RetirementDocument>) => state === 'undone' || state === 'finished';

/** Milliseconds that a request of a route may still run for when it answers nobody any more. */
function longestMs({ kind, name }: Subject, { routes, backends }: Settings): number {
  if (kind !== 'route') return 0;
  const { targets, deadline } = routes[name]!;
  return deadline + Math.max(...targets.map(({ backend }) => backends[backend]?.timeouts.total ?? 0));
}
