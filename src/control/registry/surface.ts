import {
  type AliasView,
  ApiFault,
  type RegistrySurface,
  type VersionView,
  type VersionViewInFull,
} from '../../api/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Manifest, missingIn, type Registry } from '../../releases/registry/index.ts';
import type { RegistryStore, StoredAlias, StoredVersion } from '../../store/registry.ts';
import { orRefused, toldSteps } from './refusals.ts';

/** The registry as the management API shows it. Everything is read from the store when it is asked. */
export function registrySurface(registry: Registry, store: RegistryStore, clock: Clock): RegistrySurface {
  const { content } = registry;
  const views = new Views(registry, store, clock);
  return {
    async registeredModels({ limit, after }) {
      const models = await store.models(limit + 1, after);
      const data = models.slice(0, limit).map(({ newest = null, ...model }) => ({ ...model, newest }));
      return { data, next: models.length > limit ? data.at(-1)!.name : null };
    },
    async registeredModel(name, { limit, after }) {
      if (!(await store.model(name))) throw new ApiFault(404, 'not_found', `There is no model '${name}'.`);
      const aliases = await store.aliases(name);
      const versions = await store.versions(
        name,
        limit + 1,
        after === undefined ? undefined : numberIn(after),
      );
      const data = versions.slice(0, limit).map((version) => views.version(version, aliases));
      const next = versions.length > limit ? String(data.at(-1)!.number) : null;
      return { name, aliases: aliases.map((alias) => views.alias(alias)), data, next };
    },
    version: async (at) => views.inFull(await views.find(at)),
    addVersion: async (model, asked, actor) =>
      views.inFull(await orRefused(registry.add({ ...asked, model }, actor))),
    removeVersion: async (at, actor) => orRefused(registry.remove(await views.find(at), actor)),
    async versionDifference(at, to) {
      const { model, number } = await views.find(at);
      if (to === undefined) throw new ApiFault(400, 'invalid_request', 'say to which: ?to=NAME@NUMBER');
      return orRefused(registry.difference(`${model}@${number}`, to));
    },
    async versionSteps(what, at, actor) {
      const version = await views.find(at);
      if (what === 'verify') return toldSteps(content.verify(version, actor));
      if (what === 'archive') return toldSteps(await orRefused(registry.archive(version, actor)));
      return toldSteps(await orRefused(Promise.resolve().then(() => registry.restore(version, actor))));
    },
    async alias(model, alias, { limit, after }) {
      const found = await store.alias(model, alias);
      if (!found) throw new ApiFault(404, 'not_found', `There is no alias '${alias}' of a model '${model}'.`);
      const before = after === undefined ? undefined : numberIn(after);
      const moves = await store.aliasMoves(model, alias, limit + 1, before);
      const history = moves.slice(0, limit).map(({ revision, number = null, at, actor, event }) => {
        return { revision, number, at, actor, event };
      });
      const next = moves.length > limit ? String(history.at(-1)!.revision) : null;
      return { ...views.alias(found), history, next };
    },
    moveAlias: async (model, alias, { version: to, expect }, actor) =>
      views.alias(await orRefused(registry.moveAlias({ model, alias, to, expect }, actor))),
    removeAlias: (model, alias, expect, actor) =>
      orRefused(registry.removeAlias({ model, alias, expect }, actor)),
    content: (sha256) => content.state(sha256),
    addContent: (sha256, at, piece) => orRefused(content.add(sha256, at, piece)),
    finishContent: async (sha256) => toldSteps(content.finish(sha256)),
  };
}

class Views {
  readonly #registry: Registry;
  readonly #store: RegistryStore;
  readonly #clock: Clock;

  constructor(registry: Registry, store: RegistryStore, clock: Clock) {
    this.#registry = registry;
    this.#store = store;
    this.#clock = clock;
  }

  async find({ model, number }: { model: string; number: string }): Promise<StoredVersion> {
    const found = await this.#store.version(model, numberIn(number));
    if (!found) throw new ApiFault(404, 'not_found', `There is no version ${model}@${number}.`);
    return found;
  }

  version(version: StoredVersion, aliases: readonly StoredAlias[]): VersionView {
    const { model, number, state, sealedAt, actor, event, digest, files } = version;
    const manifest = version.manifest as Manifest;
    return {
      version: `${model}@${number}`,
      model,
      number,
      state,
      sealedAt,
      actor,
      event,
      digest,
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      aliases: aliases.filter((alias) => alias.number === number).map(({ alias }) => alias),
      manifest: manifest as unknown as Record<string, unknown>,
      missing: missingIn(manifest),
    };
  }

  async inFull(version: StoredVersion): Promise<VersionViewInFull> {
    const aliases = await this.#store.aliases(version.model);
    return { ...this.version(version, aliases), users: await this.#registry.usersOf(version) };
  }

  alias({ alias, model, number, revision, at, actor, event }: StoredAlias): AliasView {
    const ageMs = Math.max(0, this.#clock.wall() - Date.parse(at));
    return { alias, model, number, version: `${model}@${number}`, revision, at, ageMs, actor, event };
  }
}

function numberIn(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new ApiFault(404, 'not_found', `'${text}' is no number of a version.`);
}
