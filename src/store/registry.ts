import type { LedgerEvent } from '../events/contracts.ts';

/**
 * Versions of models, the content they are made of, and aliases. What the content is and whether it is good is the
 * registry's business; here numbers are given, what is sealed stays, and every change is on the disk together with the
 * event that tells of it before its promise resolves.
 *
 * A version is known by a number and an alias by a text, and the two never share a key.
 */
export interface RegistryStore {
  /**
   * Seals a version under the next number of its model, which is given in the transaction, so that two that come at once
   * get two. `told` makes the event, as its number is known then. What was added by the same key is given as it is, and
   * nothing is told. Rejects with `conflict` where one of its files or its parent is not there, a bound is passed, or the
   * key stands for something else.
   */
  addVersion(version: NewVersion, told: (number: number) => LedgerEvent): Promise<StoredVersion>;
  version(model: string, number: number): Promise<StoredVersion | undefined>;
  /** Newest first; only those of a number below `before`. */
  versions(model: string, limit: number, before?: number): Promise<StoredVersion[]>;
  /** The versions whose manifests name a decision, newest first, with the events that they were sealed by. */
  namedBy(decision: string, limit: number): Promise<{ model: string; number: number; event: string }[]>;
  /** By name; only those that follow `after`. Models whose versions are all removed are told too. */
  models(limit: number, after?: string): Promise<StoredModel[]>;
  model(name: string): Promise<StoredModel | undefined>;
  /**
   * Removes a version and forgets the content that nobody else has: that is what it resolves to, for it to be deleted, and a
   * leftover from now on.
   * Undefined where there is no such version. Rejects with `conflict` where an alias leads to it or a version descends from it.
   */
  removeVersion(model: string, number: number, event: LedgerEvent): Promise<StoredArtifact[] | undefined>;
  /** Changes where a version stands, and where content lies. Rejects with `conflict` where it does not stand at `from`, or where an alias leads to what is archived. */
  changeState(change: StateChange, event: LedgerEvent): Promise<void>;
  /**
   * Leads an alias to another version, or takes it away. Undefined where it was taken away. What leads there already
   * stays as it is, and nothing is told. Rejects with `conflict` where it does not lead where the mover expects, where the
   * version is not there or archived, or a bound is passed.
   */
  moveAlias(move: AliasMove, event: LedgerEvent): Promise<StoredAlias | undefined>;
  alias(model: string, alias: string): Promise<StoredAlias | undefined>;
  /** By alias. */
  aliases(model: string): Promise<StoredAlias[]>;
  /** Newest first; only revisions below `before`. */
  aliasMoves(model: string, alias: string, limit: number, before?: number): Promise<StoredAliasMove[]>;
  /** Keeps what is known of content; of what is known already only where it lies changes. */
  addArtifact(artifact: StoredArtifact): Promise<void>;
  artifact(sha256: string): Promise<StoredArtifact | undefined>;
  /** The versions that have a file of this content. */
  usersOf(sha256: string): Promise<{ model: string; number: number; state: VersionState }[]>;
  /** Content of no version, stored before a time in milliseconds since the epoch. */
  unused(beforeMs: number, limit: number): Promise<StoredArtifact[]>;
  /** False where a version has it, or it is not known; else it is a leftover from now on. */
  forget(sha256: string): Promise<boolean>;
  /** Notes, on the disk, that a copy of some content may come to lie where nothing names it. */
  addLeftover(sha256: string): Promise<void>;
  /** By hash; only those that follow `after`. */
  leftovers(limit: number, after?: string): Promise<string[]>;
  removeLeftover(sha256: string): Promise<void>;
}

export const MODELS_MAX = 10_000;
export const VERSIONS_MAX = 100_000;
export const FILES_MAX = 10_000;
/** Aliases of one model. */
export const ALIASES_MAX = 1000;
/** Moves of one alias. */
export const MOVES_MAX = 1_000_000;
/** The longest manifest, in characters of its JSON. */
export const MANIFEST_CHARS_MAX = 8 * 1024 * 1024;

export type VersionState = 'live' | 'archived';

export interface VersionFile {
  /** Relative, with slashes. */
  path: string;
  /** 64 hexadecimal digits. */
  sha256: string;
}

export interface NewVersion {
  model: string;
  /** JSON; what is in it the registry knows. */
  manifest: unknown;
  /** SHA-256 of the manifest, hexadecimal. */
  digest: string;
  files: readonly VersionFile[];
  parent?: { model: string; number: number };
  /** Decisions that its manifest names: `dec_...`. */
  decisions?: readonly string[];
  /** By what key it is added, for it to be added once; `asked` is a hash of all that was asked for by it. */
  once?: { key: string; asked: string };
}

export interface StoredVersion extends Omit<NewVersion, 'files' | 'decisions' | 'once'> {
  number: number;
  files: (VersionFile & { bytes: number })[];
  state: VersionState;
  /** ISO 8601, milliseconds, UTC. */
  sealedAt: string;
  actor: string;
  event: string;
}

export interface StoredModel {
  name: string;
  /** How many there are, archived ones included. */
  versions: number;
  /** The highest number that is there. */
  newest: number | undefined;
  aliases: number;
}

export interface StoredArtifact {
  sha256: string;
  bytes: number;
  place: 'live' | 'archive';
  /** What was found in it. */
  inspection: unknown;
  /** Milliseconds since the epoch. */
  storedMs: number;
}

export interface StateChange {
  model: string;
  number: number;
  from: VersionState;
  to: VersionState;
  /** Content that lies at `place` from now on, save what a live version has and would have to be live. */
  moved: readonly string[];
  place: StoredArtifact['place'];
}

export interface AliasMove {
  model: string;
  alias: string;
  /** Undefined: it is taken away. */
  to: number | undefined;
  /** What it must lead to before, null: it must not be there. Undefined: whatever it is. */
  expect: number | null | undefined;
}

export interface StoredAlias {
  model: string;
  alias: string;
  number: number;
  /** 1 at first, and one more with each move, whether it was taken away between or not. */
  revision: number;
  /** ISO 8601 of its last move, who moved it, and the event that tells of it. */
  at: string;
  actor: string;
  event: string;
}

export type StoredAliasMove = Omit<StoredAlias, 'number'> & { number: number | undefined };

/** Why something else is not added by a key that was used. */
export function addedByKey(model: string, number: number, key: string): string {
  return `by the key '${key}' ${model}@${number} was added, of another manifest or other files: say another key`;
}
