import { isAbsolute, join, resolve } from 'node:path';
import type { Fault } from '../../config/faults.ts';
import type { RegistrySettings, Settings } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import { Decisions } from '../../releases/decisions/index.ts';
import {
  type ArtifactStore,
  Artifacts,
  directoryStore,
  s3Store,
} from '../../releases/registry/artifacts/index.ts';
import { nameOf } from '../../releases/registry/content.ts';
import { Registry, type Resolved } from '../../releases/registry/index.ts';
import { readReference } from '../../releases/registry/reference.ts';
import type { Guard } from '../guards.ts';
import { cameOf } from './alarm-trail.ts';

export interface RegistryServiceOptions {
  ledger: LedgerService;
  clock: Clock;
  random: Random;
  log: { warn(figures: object, words: string): void };
  /** The data directory. */
  data: string;
  /** `registry`, as it was at the start. */
  settings: RegistrySettings;
}

/** What of a running control the registry asks. */
export interface RegistryControl {
  effective: { settings: Settings };
}

/** What version a backend serves, as the registry has it now. */
export interface ServedVersion {
  /** As the configuration names it. */
  named: string;
  /** `NAME@NUMBER`; absent where it is not there. */
  version?: string;
  /** Where it is named by an alias: its revision, and when that was made (ISO 8601). */
  alias?: { revision: number; at: string; ageMs: number };
}

/** Decisions about one thing that `why` tells. */
const DECISIONS_TOLD = 3;
/** Versions that name one decision, of which it is told. */
const NAMING_TOLD = 10;

/** The registry of control: versions, the decisions that they are linked to, and who uses them. */
export class RegistryService implements Guard {
  readonly registry: Registry;
  readonly decisions: Decisions;
  readonly #options: RegistryServiceOptions;
  #control: RegistryControl | undefined;
  /** Backends whose version was told to be missing. */
  #missing = '';

  constructor(options: RegistryServiceOptions) {
    const { ledger, clock, random, data, settings } = options;
    this.#options = options;
    const event = ledger.event;
    this.decisions = new Decisions({ documents: ledger.store.documents, event, clock, random });
    this.registry = new Registry({
      store: ledger.store.registry,
      event,
      append: (told) => ledger.store.ledger.append([told]),
      clock,
      artifacts: new Artifacts({
        live: storeAt(settings.store, settings, data),
        archive: storeAt(settings.archive, settings, data),
        folder: join(data, 'registry'),
      }),
      onLeft: (error) =>
        this.#options.log.warn({ err: error }, 'content that nothing names is not removed yet'),
      usersOf: (version) => this.#usersOf(version),
      usersOfAlias: (model, alias) => {
        const backends = Object.entries(this.#control?.effective.settings.backends ?? {});
        return backends
          .filter(([, { version }]) => version === `${model}@${alias}`)
          .map(([name]) => `backend ${name}`);
      },
      decisionEvent: async (id) => (await this.decisions.get(id))?.event,
      cameOf: (alarm) => cameOf(alarm, ledger.store.ledger),
    });
  }

  begin(control: RegistryControl): void {
    this.#control = control;
    this.settled();
    void this.registry.content.tidy();
  }

  /** Backends that name a version that is not there are told; they serve all the same. */
  settled(): void {
    const settings = this.#control?.effective.settings;
    if (!settings) return;
    this.#unknown(settings)
      .then((unknown) => {
        const missing = unknown.map(({ backend, message }) => `${backend}: ${message}`).join('; ');
        if (missing === this.#missing) return;
        this.#missing = missing;
        if (missing !== '') this.#options.log.warn({ missing }, 'backends name versions that are not there');
      })
      .catch((error: Error) =>
        this.#options.log.warn({ err: error }, 'versions of backends cannot be looked up'),
      );
  }

  /** A backend may not come to name a version that is not there; what was named before and is gone is told, not refused. */
  async objections(before: Settings, after: { settings: Settings }, file: string): Promise<Fault[]> {
    const unknown = await this.#unknown(after.settings);
    return unknown
      .filter(({ backend, named }) => before.backends[backend]?.version !== named)
      .map(({ backend, named, message }) => ({
        code: 'unknown-name',
        file,
        line: 0,
        column: 0,
        path: `backends.${backend}.version`,
        message,
        expected: 'a version of the registry, NAME@NUMBER or NAME@ALIAS',
        found: named,
      }));
  }

  async #unknown(settings: Settings): Promise<{ backend: string; named: string; message: string }[]> {
    const named = Object.entries(settings.backends).flatMap(([backend, { version }]) =>
      version === undefined ? [] : [{ backend, named: version }],
    );
    const looked = await Promise.all(
      named.map(async (each) => {
        const found = await this.registry.find(each.named).catch((error: Error) => error);
        return found instanceof Error ? [{ ...each, message: found.message }] : [];
      }),
    );
    return looked.flat();
  }

  /** Undefined where the backend names no version. Rejects with a StoreError. */
  async served(backend: string): Promise<ServedVersion | undefined> {
    return (await this.#served(backend))?.told;
  }

  /** The same, with the events that whatever is decided about this backend follows from: those of the version, of the alias, and of decisions about the stack. */
  async versionOf(backend: string): Promise<(ServedVersion & { events: string[] }) | undefined> {
    const served = await this.#served(backend);
    if (!served) return undefined;
    const { told, found } = served;
    if (!found) return { ...told, events: [] };
    const subjects = [`version:${told.version}`, `backend:${backend}`];
    const alias = found.alias ? [found.alias.event] : [];
    return { ...told, events: [found.version.event, ...alias, ...(await this.#eventsAbout(subjects))] };
  }

  async #served(backend: string): Promise<{ told: ServedVersion; found?: Resolved } | undefined> {
    const named = this.#control?.effective.settings.backends[backend]?.version;
    const reference = named === undefined ? undefined : readReference(named);
    if (named === undefined || !reference) return undefined;
    const found = await this.registry.resolve(reference);
    if (!found) return { told: { named } };
    const { version, alias } = found;
    const told = {
      named,
      version: nameOf(version),
      ...(alias && {
        alias: {
          revision: alias.revision,
          at: alias.at,
          ageMs: Math.max(0, this.#options.clock.wall() - Date.parse(alias.at)),
        },
      }),
    };
    return { told, found };
  }

  /**
   * Events that tell more of a subject than its own do: decisions about it, the version that a backend serves or an alias
   * leads to, and the versions whose manifests name a decision.
   */
  async related(subject: string): Promise<string[]> {
    const [, kind, name = ''] = /^(backend|version|decision):(.*)$/s.exec(subject) ?? [];
    const about = await this.#eventsAbout([subject]);
    if (kind === 'backend') about.push(...((await this.versionOf(name))?.events ?? []));
    if (kind === 'version') about.push(...(await this.#aliased(name)));
    if (kind === 'decision') about.push(...(await this.#namedBy(name)));
    return [...new Set(about)];
  }

  async #eventsAbout(subjects: string[]): Promise<string[]> {
    return (await this.decisions.about(subjects, DECISIONS_TOLD)).map(({ event }) => event);
  }

  /** The events of the newest versions whose manifests name a decision. */
  async #namedBy(decision: string): Promise<string[]> {
    const versions = await this.#options.ledger.store.registry.namedBy(decision, NAMING_TOLD);
    return versions.map(({ event }) => event);
  }

  /** The events of an alias and of where it leads; none of what is a number. */
  async #aliased(text: string): Promise<string[]> {
    const reference = readReference(text);
    const found = reference && 'alias' in reference ? await this.registry.resolve(reference) : undefined;
    if (!found?.alias) return [];
    const { alias, version } = found;
    return [alias.event, version.event, ...(await this.#eventsAbout([`version:${nameOf(version)}`]))];
  }

  /** Backends that name it; a release or a certificate is of such a backend. */
  async #usersOf({ model, number }: { model: string; number: number }): Promise<string[]> {
    const backends = Object.entries(this.#control?.effective.settings.backends ?? {});
    const users: string[] = [];
    for (const [name, { version }] of backends) {
      const reference = version === undefined ? undefined : readReference(version);
      if (!reference || reference.model !== model) continue;
      const found = await this.registry.resolve(reference);
      if (found?.version.number === number) users.push(`backend ${name}`);
    }
    return users;
  }
}

/** `file:DIRECTORY` or `s3://BUCKET/PREFIX`, which the configuration's checks have looked at. */
function storeAt(place: string, { s3 }: RegistrySettings, data: string): ArtifactStore {
  if (place.startsWith('file:')) {
    const path = place.slice('file:'.length);
    return directoryStore(isAbsolute(path) ? path : resolve(data, path));
  }
  const { hostname: bucket, pathname } = new URL(place);
  if (!s3) throw new Error(`registry.s3 does not say where ${place} is`);
  return s3Store({ bucket, prefix: pathname.replace(/^\/+|\/+$/g, ''), ...s3 });
}
