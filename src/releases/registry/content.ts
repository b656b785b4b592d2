import type { LedgerEvent } from '../../events/contracts.ts';
import type { EventDraft } from '../../events/event-maker.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { RegistryStore, StoredArtifact, StoredVersion, VersionState } from '../../store/registry.ts';
import { ArtifactError, type Artifacts, hashOf } from './artifacts/index.ts';
import { BrokenFile, type Inspection, inspect } from './formats/index.ts';
import { Leftovers } from './leftovers.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { Refused } from './refused.ts';
import { type Report, type Step, stepsOf } from './steps.ts';

/** Content that came in and that no version has taken for so long is removed. */
const UNUSED_MS = 7 * 24 * 3600 * 1000;
const SWEPT_MAX = 100;

export interface ContentState {
  sha256: string;
  /** How many bytes are there. */
  bytes: number;
  /** Whole, hashed and looked at: a version may have it. */
  kept: boolean;
}

export interface ContentOptions {
  store: RegistryStore;
  event: (draft: EventDraft) => LedgerEvent;
  append: (event: LedgerEvent) => Promise<void>;
  clock: Clock;
  artifacts: Artifacts;
  /** Told why a copy that nothing names could not be removed yet. */
  onLeft: (error: unknown) => void;
}

/** What versions are made of: how it comes in, is looked at, verified, archived, restored and removed. */
export class Content {
  readonly #options: ContentOptions;
  /** Two that bring, move or remove the same content do so one after the other. */
  readonly #turns = new OneAtATime();
  readonly #leftovers: Leftovers;
  /** Live content that was found not to be as it was, until it comes in again. */
  readonly #damaged = new Set<string>();

  constructor(options: ContentOptions) {
    this.#options = options;
    this.#leftovers = new Leftovers({ ...options, turns: this.#turns });
  }

  async state(sha256: string): Promise<ContentState> {
    const { artifacts } = this.#options;
    const known = await this.kept(sha256);
    if (known) return { sha256, bytes: known.bytes, kept: true };
    return { sha256, bytes: await artifacts.incoming.bytes(sha256), kept: false };
  }

  /** What is known of live content; undefined where it has not come in, or has to come in again: it is gone, or damaged. */
  async kept(sha256: string): Promise<StoredArtifact | undefined> {
    const { store, artifacts } = this.#options;
    const known = await store.artifact(sha256);
    if (known?.place !== 'live' || this.#damaged.has(sha256)) return undefined;
    return (await artifacts.hasLive(sha256)) ? known : undefined;
  }

  /** The next piece of content that comes in; see Incoming.add. */
  add(sha256: string, at: number, piece: Buffer): Promise<ContentState> {
    const { artifacts, clock } = this.#options;
    return this.#turns.run(sha256, async () => {
      const { kept, bytes: there } = await this.state(sha256);
      // Another brings the same at the same time, and was faster: it is told where to go on.
      if (kept || at < there) return { sha256, bytes: there, kept };
      try {
        const bytes = await artifacts.incoming.add(sha256, at, piece, clock.wall());
        return { sha256, bytes, kept: false };
      } catch (error) {
        if (error instanceof ArtifactError && error.trouble === 'wrong')
          throw new Refused('conflict', error.message);
        throw error;
      }
    });
  }

  /** Hashes content that has come in whole, looks at what it is, and keeps it. */
  finish(sha256: string): AsyncGenerator<Step<ContentState & { inspection: Inspection }>> {
    return stepsOf(async (report, signal) => {
      const finished = await this.#turns.run(sha256, () => this.#finish(sha256, report, signal));
      await this.#sweep(sha256);
      return finished;
    });
  }

  async #finish(sha256: string, report: Report, signal: AbortSignal) {
    const { store, artifacts, clock } = this.#options;
    const known = await this.kept(sha256);
    if (known) return { sha256, bytes: known.bytes, kept: true, inspection: known.inspection as Inspection };
    const path = artifacts.incoming.pathOf(sha256);
    const bytes = await artifacts.incoming.bytes(sha256);
    const onBytes = (what: string) => (done: number) => report(what, done, bytes);
    const found = await hashOf(path, { onBytes: onBytes('hashing'), signal }).catch((error) => {
      if (!(error instanceof ArtifactError && error.trouble === 'missing')) throw error;
      throw new Refused('not_found', `nothing of ${sha256} has come in`);
    });
    if (found !== sha256) {
      await artifacts.incoming.remove(sha256);
      throw new Refused(
        'invalid_request',
        `what came in as ${sha256} hashes to ${found}: it was thrown away`,
      );
    }
    const inspection = await this.#inspect(sha256, path);
    await this.#leftovers.hold(sha256);
    try {
      await artifacts.keep(sha256, { onBytes: onBytes('storing'), signal });
      await store.addArtifact({ sha256, bytes, place: 'live', inspection, storedMs: clock.wall() });
    } finally {
      this.#leftovers.release(sha256);
    }
    this.#damaged.delete(sha256);
    return { sha256, bytes, kept: true, inspection };
  }

  async #inspect(sha256: string, path: string): Promise<Inspection> {
    try {
      return await inspect(path);
    } catch (error) {
      if (!(error instanceof BrokenFile)) throw error;
      await this.#options.artifacts.incoming.remove(sha256);
      throw new Refused('invalid_request', `${sha256} is broken: ${error.message}`);
    }
  }

  /** Removes the copies that a death in the middle has left where nothing names them. */
  tidy(): Promise<void> {
    return this.#leftovers.tidyAll();
  }

  /** Removes what came in long ago and no version has taken, and what could not be removed before. */
  async #sweep(except: string): Promise<void> {
    const { store, clock } = this.#options;
    for (const { sha256 } of await store.unused(clock.wall() - UNUSED_MS, SWEPT_MAX)) {
      if (sha256 !== except && (await store.forget(sha256))) await this.remove(sha256);
    }
    await this.tidy();
  }

  /** Removes the copies of what no version has any more. */
  remove(sha256: string): Promise<void> {
    this.#damaged.delete(sha256);
    return this.#leftovers.tidy(sha256);
  }

  /** Reads every file of a version through, and tells what is not as it was. */
  verify(version: StoredVersion, actor: string): AsyncGenerator<Step<Verified>> {
    return stepsOf(async (report, signal) => {
      const damaged: Verified['damaged'] = [];
      await this.#each(version, report, signal, async (sha256, path, progress) => {
        const { store, artifacts } = this.#options;
        const place = (await store.artifact(sha256))?.place ?? 'live';
        try {
          await artifacts.verify(sha256, place, progress);
          this.#damaged.delete(sha256);
        } catch (error) {
          if (!(error instanceof ArtifactError) || !/missing|damaged/.test(error.trouble)) throw error;
          if (place === 'live') this.#damaged.add(sha256);
          damaged.push({ path, trouble: error.trouble as 'missing' | 'damaged', message: error.message });
        }
      });
      const bytes = bytesOf(version);
      const event = this.#options.event({
        ...aboutVersion(version, actor),
        type: damaged.length > 0 ? 'version-damaged' : 'version-verified',
        data: {
          version: nameOf(version),
          files: version.files.length,
          bytes,
          ...(damaged.length > 0 && { damaged: damaged.map(({ path, trouble }) => `${path} (${trouble})`) }),
        },
      });
      await this.#options.append(event);
      return {
        version: nameOf(version),
        ok: damaged.length === 0,
        files: version.files.length,
        bytes,
        damaged,
        event: event.id,
      };
    });
  }

  /** Moves what only archived versions have into the archive; the manifest stays. */
  archive(version: StoredVersion, actor: string): AsyncGenerator<Step<Moved>> {
    return this.#move(version, actor, 'archived');
  }

  /** Brings an archived version back. */
  restore(version: StoredVersion, actor: string): AsyncGenerator<Step<Moved>> {
    return this.#move(version, actor, 'live');
  }

  /**
   * First the copies are made and read back, then the version stands where it is moved to, together with where its content
   * lies, then what is no longer needed goes. Whoever is interrupted between has both copies, and may begin again.
   */
  #move(version: StoredVersion, actor: string, to: VersionState): AsyncGenerator<Step<Moved>> {
    const { store, artifacts } = this.#options;
    const place = to === 'archived' ? 'archive' : 'live';
    return stepsOf(async (report, signal) => {
      const moved: string[] = [];
      try {
        await this.#each(version, report, signal, async (sha256, _path, progress) => {
          if ((await store.artifact(sha256))?.place === place) return;
          if (to === 'archived' && (await this.#isShared(sha256, version))) return;
          await this.#leftovers.hold(sha256);
          moved.push(sha256);
          await (to === 'archived'
            ? artifacts.archive(sha256, progress)
            : artifacts.restore(sha256, progress));
        });
        const type = to === 'archived' ? 'version-archived' : 'version-restored';
        const data = { version: nameOf(version), files: moved.length, place: artifacts.names[place] };
        const event = this.#options.event({ ...aboutVersion(version, actor), type, data });
        const { model, number, state: from } = version;
        await store.changeState({ model, number, from, to, moved, place }, event);
        return { version: nameOf(version), state: to, moved: moved.length, event: event.id };
      } finally {
        for (const sha256 of moved) this.#leftovers.release(sha256);
        for (const sha256 of moved) await this.#leftovers.tidy(sha256);
      }
    });
  }

  /** Whether another live version has it. */
  async #isShared(sha256: string, version: StoredVersion): Promise<boolean> {
    const users = await this.#options.store.usersOf(sha256);
    return users.some((user) => user.state === 'live' && nameOf(user) !== nameOf(version));
  }

  async #each(
    version: StoredVersion,
    report: Report,
    signal: AbortSignal,
    look: (
      sha256: string,
      path: string,
      progress: { onBytes: (bytes: number) => void; signal: AbortSignal },
    ) => Promise<void>,
  ): Promise<void> {
    const total = bytesOf(version);
    let before = 0;
    for (const { path, sha256, bytes } of version.files) {
      const onBytes = (done: number) => report(path, before + Math.min(done, bytes), total);
      await this.#turns.run(sha256, () => look(sha256, path, { onBytes, signal }));
      before += bytes;
      report(path, before, total);
    }
  }
}

export interface Verified {
  version: string;
  ok: boolean;
  files: number;
  bytes: number;
  damaged: { path: string; trouble: 'missing' | 'damaged'; message: string }[];
  event: string;
}

export interface Moved {
  version: string;
  state: VersionState;
  /** Files whose content was moved: what a live version shares stays. */
  moved: number;
  event: string;
}

export const nameOf = ({ model, number }: { model: string; number: number }): string => `${model}@${number}`;

export const bytesOf = ({ files }: StoredVersion): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

/** What events of a version have in common; they follow from the one that sealed it. */
export function aboutVersion(version: StoredVersion, actor: string) {
  return { subject: `version:${nameOf(version)}`, actor, causes: [version.event] };
}
