import { createHash } from 'node:crypto';
import type { Fault } from '../../config/faults.ts';
import { FILES_MAX, type RegistryStore, type StoredAlias, type StoredVersion } from '../../store/registry.ts';
import { completeManifest, type InspectedFile } from './complete.ts';
import { aboutVersion, bytesOf, Content, type ContentOptions, nameOf } from './content.ts';
import { type Difference, differences } from './difference.ts';
import type { Inspection } from './formats/index.ts';
import { FILE_PATH, type Manifest, missingIn } from './manifest.ts';
import { readManifest } from './manifest-faults.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { ALIAS_NAME, MODEL_NAME, type Reference, readReference, writeReference } from './reference.ts';
import { Refused } from './refused.ts';

export interface RegistryOptions extends ContentOptions {
  /** Who uses a version beside aliases and descendants, in words, such as `backend llama`. */
  usersOf(version: { model: string; number: number }): Promise<string[]>;
  /** Who names a version by an alias, in words: they would be left without one. */
  usersOfAlias(model: string, alias: string): string[];
  /** The event that tells of a decision; undefined where there is no such decision. */
  decisionEvent(id: string): Promise<string | undefined>;
  /** The last event that came of an alarm of drift, such as the retraining that was asked for. */
  cameOf(alarm: string): Promise<string>;
}

export interface NewVersionAsked {
  model: string;
  /** As it was written, read from YAML or JSON. */
  manifest: unknown;
  files: readonly { path: string; sha256: string }[];
  /** Said aloud: pickles may be in it. */
  allowPickle: boolean;
  /** What it is known by, for it to be added once however often it is asked for. */
  once?: string | undefined;
}

/** What a reference leads to now. */
export interface Resolved {
  version: StoredVersion;
  /** Where it was named by an alias: what that is now. */
  alias?: StoredAlias;
}

/** Versions of models: sealed with what they are made of, named by aliases, and kept as long as somebody uses them. */
export class Registry {
  readonly content: Content;
  readonly #options: RegistryOptions;
  readonly #store: RegistryStore;
  readonly #moves = new OneAtATime();

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#store = options.store;
    this.content = new Content(options);
  }

  /**
   * Seals a version of files that have come in; gives the one that was sealed by the same key before. Rejects with Refused,
   * and every fault, where the manifest cannot be read, contradicts the files, or something is not there.
   */
  async add(asked: NewVersionAsked, actor: string): Promise<StoredVersion> {
    const { model, allowPickle, once } = asked;
    if (!MODEL_NAME.test(model))
      throw new Refused(
        'invalid_request',
        `'${model}' is no name of a model: 100 letters, digits and . _ - at most`,
      );
    const said = readManifest(asked.manifest);
    if (!said.manifest) throw refusedFor(`the manifest of ${model} cannot be used`, said.faults.map(inWords));
    const files = await this.#filesOf(asked.files);
    const { manifest, faults } = completeManifest(said.manifest, files, allowPickle ? actor : undefined);
    const { parent, causes, faults: broken } = await this.#linksOf(manifest);
    if (faults.length + broken.length > 0)
      throw refusedFor(`this is no version of ${model}`, [...faults, ...broken]);
    const digest = digestOf(manifest);
    const told = files.map(({ path, sha256 }) => ({ path, sha256 }));
    return this.#store.addVersion(
      {
        model,
        manifest,
        digest,
        files: told,
        ...(parent && { parent }),
        ...(manifest.decisions && { decisions: manifest.decisions }),
        ...(once !== undefined && { once: { key: once, asked: digestOf(asked) } }),
      },
      (number) =>
        this.#options.event({
          type: 'version-added',
          subject: `version:${model}@${number}`,
          actor,
          causes,
          data: {
            version: `${model}@${number}`,
            digest,
            format: manifest.format ?? 'pickle',
            ...(manifest.precision !== undefined && { precision: manifest.precision }),
            files: files.length,
            bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
            ...(manifest.pickles && { pickles: manifest.pickles.files }),
            ...(manifest.lineage && { lineage: manifest.lineage }),
          },
        }),
    );
  }

  async #filesOf(asked: NewVersionAsked['files']): Promise<InspectedFile[]> {
    if (asked.length === 0) throw new Refused('invalid_request', 'a version has one file at least');
    if (asked.length > FILES_MAX)
      throw new Refused('invalid_request', `a version has ${FILES_MAX} files at most`);
    const paths = new Set(asked.map(({ path }) => path));
    if (paths.size < asked.length) throw new Refused('invalid_request', 'two files have one path');
    const strange = asked.filter(({ path }) => !FILE_PATH.test(path));
    if (strange.length > 0)
      throw refusedFor(
        'paths are relative, with slashes, without . and .. and control characters in them',
        strange.map(({ path }) => `'${path}'`),
      );
    return Promise.all(
      asked.map(async ({ path, sha256 }) => {
        const content = await this.content.kept(sha256);
        if (!content) throw new Refused('not_found', `the content of ${path} (${sha256}) has not come in`);
        return { path, sha256, bytes: content.bytes, inspection: content.inspection as Inspection };
      }),
    );
  }

  /** The events that a version follows from: decisions, the alarm that it answers, its parent. */
  async #linksOf({ decisions = [], lineage }: Manifest) {
    const faults: string[] = [];
    const causes: string[] = [];
    for (const id of decisions) {
      const event = await this.#options.decisionEvent(id);
      if (event === undefined) faults.push(`there is no decision ${id}`);
      else causes.push(event);
    }
    if (lineage?.alarm !== undefined) causes.push(await this.#options.cameOf(lineage.alarm));
    if (lineage?.parent === undefined) return { faults, causes, parent: undefined };
    const resolved = await this.resolve(readReference(lineage.parent)!);
    if (!resolved)
      return { faults: [...faults, `its parent ${lineage.parent} is not there`], causes, parent: undefined };
    const { model, number, event } = resolved.version;
    // An alias may lead elsewhere tomorrow; a parent does not.
    lineage.parent = `${model}@${number}`;
    return { faults, causes: [...causes, event], parent: { model, number } };
  }

  /** Reads the store each time: nothing that was moved is served from before. */
  async resolve(reference: Reference): Promise<Resolved | undefined> {
    if ('number' in reference) {
      const version = await this.#store.version(reference.model, reference.number);
      return version && { version };
    }
    const alias = await this.#store.alias(reference.model, reference.alias);
    const version = alias && (await this.#store.version(alias.model, alias.number));
    return version && { version, alias };
  }

  /** The same by its text; rejects with Refused where it leads nowhere. */
  async find(text: string): Promise<Resolved> {
    const reference = readReference(text);
    if (!reference) throw new Refused('invalid_request', `'${text}' is neither NAME@NUMBER nor NAME@ALIAS`);
    const resolved = await this.resolve(reference);
    if (!resolved) throw new Refused('not_found', await this.#nothingCalled(reference));
    return resolved;
  }

  async #nothingCalled(reference: Reference): Promise<string> {
    const { model } = reference;
    const known = await this.#store.model(model);
    if (!known) return `there is no model ${model}`;
    if ('number' in reference)
      return `there is no ${writeReference(reference)}${known.newest === undefined ? '' : `; the newest is ${model}@${known.newest}`}`;
    const aliases = (await this.#store.aliases(model)).map(({ alias }) => alias);
    return `${model} has no alias ${reference.alias}; it has ${aliases.join(', ') || 'none'}`;
  }

  async difference(
    before: string,
    after: string,
  ): Promise<{ before: string; after: string; differences: Difference[] }> {
    const [one, other] = [(await this.find(before)).version, (await this.find(after)).version];
    return {
      before: nameOf(one),
      after: nameOf(other),
      differences: differences(one.manifest, other.manifest),
    };
  }

  /** Leads an alias to a version, by compare-and-set where `expect` is given: null for one that must not be there. */
  async moveAlias(
    move: { model: string; alias: string; to: number; expect?: number | null | undefined },
    actor: string,
  ): Promise<StoredAlias> {
    const { model, alias, to, expect } = move;
    if (!ALIAS_NAME.test(alias))
      throw new Refused(
        'invalid_request',
        `'${alias}' is no alias: a letter, then 63 letters, digits and . _ - at most`,
      );
    // One after the other, so that what an event says of where the alias led is so.
    return this.#moves.run(`${model}@${alias}`, async () => {
      const { version } = await this.find(`${model}@${to}`);
      const before = (await this.#store.alias(model, alias))?.number;
      const event = this.#options.event({
        ...aboutVersion(version, actor),
        type: 'alias-moved',
        data: { alias: `${model}@${alias}`, to, ...(before !== undefined && { from: before }) },
      });
      return (await this.#store.moveAlias({ model, alias, to, expect }, event))!;
    });
  }

  /** Takes an alias away; refused where somebody goes by it. */
  async removeAlias(
    move: { model: string; alias: string; expect?: number | undefined },
    actor: string,
  ): Promise<void> {
    const { model, alias, expect } = move;
    await this.#moves.run(`${model}@${alias}`, async () => {
      const { version } = await this.find(`${model}@${alias}`);
      const users = this.#options.usersOfAlias(model, alias);
      if (users.length > 0)
        throw new Refused('conflict', `${model}@${alias} is named by ${users.join(', ')}`, users);
      const event = this.#options.event({
        ...aboutVersion(version, actor),
        type: 'alias-removed',
        data: { alias: `${model}@${alias}`, from: version.number },
      });
      await this.#store.moveAlias({ model, alias, to: undefined, expect }, event);
    });
  }

  /** Everybody who uses a version, in words. */
  async usersOf({ model, number }: StoredVersion): Promise<string[]> {
    const aliases = (await this.#store.aliases(model)).filter((alias) => alias.number === number);
    const users = await this.#options.usersOf({ model, number });
    return [...aliases.map(({ alias }) => `alias ${model}@${alias}`), ...users];
  }

  /** Removes a version that nobody uses, with the content that nobody else has. */
  async remove(
    version: StoredVersion,
    actor: string,
  ): Promise<{ version: string; removed: true; event: string }> {
    const users = await this.usersOf(version);
    if (users.length > 0)
      throw new Refused('conflict', `${nameOf(version)} is used by ${users.join(', ')}`, users);
    const { model, number, digest } = version;
    const event = this.#options.event({
      ...aboutVersion(version, actor),
      type: 'version-removed',
      data: { version: nameOf(version), digest, bytes: bytesOf(version) },
    });
    const unused = await this.#store.removeVersion(model, number, event);
    for (const { sha256 } of unused ?? []) await this.content.remove(sha256);
    return { version: nameOf(version), removed: true, event: event.id };
  }

  /** Archives a version; refused where somebody uses it. */
  async archive(version: StoredVersion, actor: string) {
    const users = await this.usersOf(version);
    if (users.length > 0)
      throw new Refused('conflict', `${nameOf(version)} is used by ${users.join(', ')}`, users);
    if (version.state === 'archived') throw new Refused('conflict', `${nameOf(version)} is archived already`);
    return this.content.archive(version, actor);
  }

  restore(version: StoredVersion, actor: string) {
    if (version.state === 'live') throw new Refused('conflict', `${nameOf(version)} is not archived`);
    return this.content.restore(version, actor);
  }
}

const digestOf = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');

function refusedFor(what: string, faults: string[]): Refused {
  return new Refused('invalid_request', `${what}: ${faults.join('; ')}`, faults);
}

function inWords({ path, message, hint }: Fault): string {
  return `${path === '' ? '' : `${path}: `}${message}${hint === undefined ? '' : ` (${hint})`}`;
}

export { type Manifest, missingIn };
