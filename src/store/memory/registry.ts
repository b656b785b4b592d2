import { StoreError } from '../contracts.ts';
import {
  ALIASES_MAX,
  type AliasMove,
  addedByKey,
  FILES_MAX,
  MANIFEST_CHARS_MAX,
  MODELS_MAX,
  MOVES_MAX,
  type NewVersion,
  type RegistryStore,
  type StateChange,
  type StoredAlias,
  type StoredAliasMove,
  type StoredArtifact,
  type StoredModel,
  type StoredVersion,
  VERSIONS_MAX,
} from '../registry.ts';
import type { MemoryLedger } from './ledger.ts';

const refused = (message: string) => new StoreError('conflict', message);

/** One model, by what it has; numbers are numbers and aliases texts. */
class Model {
  next = 1;
  readonly versions = new Map<number, StoredVersion>();
  readonly decisions = new Map<number, readonly string[]>();
  /** By key. */
  readonly additions = new Map<string, { asked: string; number: number }>();
  readonly aliases = new Map<string, StoredAlias>();
  /** Oldest first. */
  readonly moves = new Map<string, StoredAliasMove[]>();
}

class Registry {
  readonly models = new Map<string, Model>();
  readonly artifacts = new Map<string, StoredArtifact>();
  readonly leftovers = new Set<string>();

  find(model: string, number: number): StoredVersion | undefined {
    return this.models.get(model)?.versions.get(number);
  }

  get versions(): StoredVersion[] {
    return [...this.models.values()].flatMap(({ versions }) => [...versions.values()]);
  }

  users(sha256: string): StoredVersion[] {
    return this.versions.filter(({ files }) => files.some((file) => file.sha256 === sha256));
  }

  /** Newest first. */
  namedBy(decision: string): { model: string; number: number; event: string }[] {
    const named = this.versions.filter(({ model, number }) =>
      this.models.get(model)!.decisions.get(number)!.includes(decision),
    );
    const newest = named.sort((a, b) => (a.sealedAt + a.event < b.sealedAt + b.event ? 1 : -1));
    return newest.map(({ model, number, event }) => ({ model, number, event }));
  }

  aliasOf(model: string, number: number): string | undefined {
    const aliases = [...(this.models.get(model)?.aliases.values() ?? [])];
    return aliases.find((alias) => alias.number === number)?.alias;
  }

  refuseAliased(model: string, number: number): void {
    const alias = this.aliasOf(model, number);
    if (alias !== undefined) throw refused(`the alias ${model}@${alias} leads to it`);
  }

  addedBefore({ model, once }: NewVersion): StoredVersion | undefined {
    const before = once && this.models.get(model)?.additions.get(once.key);
    if (!before) return undefined;
    if (before.asked !== once.asked) throw refused(addedByKey(model, before.number, once.key));
    return this.find(model, before.number);
  }

  remove(model: string, number: number): void {
    const { versions, decisions, additions } = this.models.get(model)!;
    versions.delete(number);
    decisions.delete(number);
    for (const [key, added] of additions) if (added.number === number) additions.delete(key);
  }

  refuseNew({ model, manifest, files, parent }: NewVersion): void {
    if (!this.models.has(model) && this.models.size >= MODELS_MAX)
      throw refused(`there are ${MODELS_MAX} models already`);
    if ((this.models.get(model)?.next ?? 1) > VERSIONS_MAX)
      throw refused(`${model} has had ${VERSIONS_MAX} versions already`);
    if (JSON.stringify(manifest).length > MANIFEST_CHARS_MAX)
      throw refused(`a manifest has ${MANIFEST_CHARS_MAX} characters at most`);
    if (files.length > FILES_MAX) throw refused(`a version has ${FILES_MAX} files at most`);
    if (parent && !this.find(parent.model, parent.number))
      throw refused(`its parent ${parent.model}@${parent.number} is not there`);
    for (const { path, sha256 } of files) {
      const place = this.artifacts.get(sha256)?.place;
      if (place === undefined) throw refused(`the content of ${path} is not there`);
      if (place !== 'live')
        throw refused(
          `the content of ${path} is archived: restore a version that has it, or upload it again`,
        );
    }
  }

  forget(sha256: string): StoredArtifact[] {
    const artifact = this.artifacts.get(sha256);
    if (!artifact || this.users(sha256).length > 0) return [];
    this.artifacts.delete(sha256);
    this.leftovers.add(sha256);
    return [artifact];
  }

  refuseChange({ model, number, from, to }: StateChange): void {
    if (to === 'archived') this.refuseAliased(model, number);
    if (this.find(model, number)?.state !== from) throw refused(`${model}@${number} is not ${from}`);
  }

  changeState({ model, number, to, moved, place }: StateChange): void {
    this.find(model, number)!.state = to;
    for (const sha256 of moved) {
      const artifact = this.artifacts.get(sha256);
      const needed = this.users(sha256).some(({ state }) => state === 'live');
      if (artifact && (place === 'live' || !needed)) artifact.place = place;
    }
  }

  refuseMove({ model, alias, to, expect }: AliasMove): void {
    const before = this.models.get(model)?.aliases.get(alias)?.number;
    if (expect !== undefined && expect !== (before ?? null)) {
      const leads = before === undefined ? 'is not there' : `leads to version ${before}`;
      throw refused(`${model}@${alias} ${leads}, where ${expect === null ? 'none' : expect} was expected`);
    }
    const moves = this.models.get(model)?.moves.get(alias)?.length ?? 0;
    if (moves >= MOVES_MAX) throw refused(`${model}@${alias} was moved ${MOVES_MAX} times already`);
    if (to === undefined) return;
    const version = this.find(model, to);
    if (version?.state !== 'live') throw refused(`${model}@${to} is ${version ? 'archived' : 'not there'}`);
    const aliases = this.models.get(model)!.aliases;
    if (!aliases.has(alias) && aliases.size >= ALIASES_MAX)
      throw refused(`${model} has ${ALIASES_MAX} aliases already`);
  }
}

/** What is refused changes nothing: it is looked at first, then the event is added, then everything is changed at once. */
export function registryOver(ledger: MemoryLedger): RegistryStore {
  const registry = new Registry();
  return { ...versionsOf(registry, ledger), ...aliasesOf(registry, ledger), ...artifactsOf(registry) };
}

function modelOf(name: string, { versions, aliases }: Model): StoredModel {
  return {
    name,
    versions: versions.size,
    newest: versions.size === 0 ? undefined : Math.max(...versions.keys()),
    aliases: aliases.size,
  };
}

function versionsOf(registry: Registry, ledger: MemoryLedger) {
  return {
    async addVersion({ decisions = [], once, ...version }, told) {
      const before = registry.addedBefore({ ...version, ...(once && { once }) });
      if (before) return structuredClone(before);
      registry.refuseNew(version);
      const model = registry.models.get(version.model) ?? new Model();
      const number = model.next;
      const event = told(number);
      ledger.add([event]);
      const stored: StoredVersion = structuredClone({
        ...version,
        number,
        files: version.files
          .map((file) => ({ ...file, bytes: registry.artifacts.get(file.sha256)!.bytes }))
          .sort((a, b) => (a.path < b.path ? -1 : 1)),
        state: 'live',
        sealedAt: event.at,
        actor: event.actor,
        event: event.id,
      });
      model.next++;
      model.versions.set(number, stored);
      model.decisions.set(number, decisions);
      if (once) model.additions.set(once.key, { asked: once.asked, number });
      registry.models.set(version.model, model);
      return structuredClone(stored);
    },
    async version(model, number) {
      return structuredClone(registry.find(model, number));
    },
    async versions(model, limit, before = Number.MAX_SAFE_INTEGER) {
      const versions = [...(registry.models.get(model)?.versions.values() ?? [])];
      return versions
        .filter(({ number }) => number < before)
        .sort((a, b) => b.number - a.number)
        .slice(0, limit)
        .map((version) => structuredClone(version));
    },
    namedBy: async (decision, limit) => registry.namedBy(decision).slice(0, limit),
    async models(limit, after = '') {
      return [...registry.models]
        .filter(([name]) => name > after)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .slice(0, limit)
        .map(([name, model]) => modelOf(name, model));
    },
    async model(name) {
      const model = registry.models.get(name);
      return model && modelOf(name, model);
    },
    async removeVersion(model, number, event) {
      const version = registry.find(model, number);
      if (!version) return undefined;
      registry.refuseAliased(model, number);
      const child = registry.versions.find(
        ({ parent }) => parent?.model === model && parent.number === number,
      );
      if (child) throw refused(`${child.model}@${child.number} descends from it`);
      ledger.add([event]);
      registry.remove(model, number);
      return version.files.flatMap(({ sha256 }) => registry.forget(sha256));
    },
    async changeState(change, event) {
      registry.refuseChange(change);
      ledger.add([event]);
      registry.changeState(change);
    },
  } satisfies Partial<RegistryStore>;
}

function aliasesOf(registry: Registry, ledger: MemoryLedger) {
  return {
    async moveAlias(move, event) {
      const { model, alias, to, expect } = move;
      const before = registry.models.get(model)?.aliases.get(alias);
      if (before?.number === to && !(expect !== undefined && expect !== (to ?? null)))
        return structuredClone(before);
      registry.refuseMove(move);
      ledger.add([event]);
      const { aliases, moves } = registry.models.get(model)!;
      const revision = (moves.get(alias)?.length ?? 0) + 1;
      const { at, actor, id } = event;
      const moved = { model, alias, number: to, revision, at, actor, event: id };
      moves.set(alias, [...(moves.get(alias) ?? []), moved]);
      if (to === undefined) aliases.delete(alias);
      else aliases.set(alias, { ...moved, number: to });
      return structuredClone(aliases.get(alias));
    },
    async alias(model, alias) {
      return structuredClone(registry.models.get(model)?.aliases.get(alias));
    },
    async aliases(model) {
      const aliases = [...(registry.models.get(model)?.aliases.values() ?? [])];
      return structuredClone(aliases).sort((a, b) => (a.alias < b.alias ? -1 : 1));
    },
    async aliasMoves(model, alias, limit, before = Number.MAX_SAFE_INTEGER) {
      const moves = registry.models.get(model)?.moves.get(alias) ?? [];
      const asked = moves.filter(({ revision }) => revision < before);
      return structuredClone(asked.toReversed().slice(0, limit));
    },
  } satisfies Partial<RegistryStore>;
}

function artifactsOf(registry: Registry) {
  return {
    async addArtifact(artifact) {
      const known = registry.artifacts.get(artifact.sha256);
      if (known) known.place = artifact.place;
      else registry.artifacts.set(artifact.sha256, structuredClone(artifact));
    },
    async artifact(sha256) {
      return structuredClone(registry.artifacts.get(sha256));
    },
    async usersOf(sha256) {
      const users = registry.users(sha256).map(({ model, number, state }) => ({ model, number, state }));
      return users.sort((a, b) => (a.model === b.model ? a.number - b.number : a.model < b.model ? -1 : 1));
    },
    async unused(beforeMs, limit) {
      return [...registry.artifacts.values()]
        .filter(({ sha256, storedMs }) => storedMs < beforeMs && registry.users(sha256).length === 0)
        .slice(0, limit)
        .map((artifact) => structuredClone(artifact));
    },
    async forget(sha256) {
      return registry.forget(sha256).length > 0;
    },
    async addLeftover(sha256) {
      registry.leftovers.add(sha256);
    },
    async leftovers(limit, after = '') {
      const following = [...registry.leftovers].filter((sha256) => sha256 > after);
      return following.sort().slice(0, limit);
    },
    async removeLeftover(sha256) {
      registry.leftovers.delete(sha256);
    },
  } satisfies Partial<RegistryStore>;
}
