import { basename } from 'node:path';
import { ApiFault, type ConfigChanged } from '../api/contracts.ts';
import type { Blamer } from '../config/blame.ts';
import { readChange } from '../config/change.ts';
import { type Change, diffConfig, needsRestart } from '../config/diff.ts';
import { type Fault, formatFault } from '../config/faults.ts';
import { keepLastGood } from '../config/last-good.ts';
import { loadConfig } from '../config/load.ts';
import { type Redirect, redirect } from '../config/redirect.ts';
import type { LedgerService } from '../events/ledger.ts';
import type { StoredOrigin } from '../store/contracts.ts';
import type { Place } from '../supervisor/parts.ts';
import type { Logger } from '../telemetry/logger.ts';
import { withAuthors } from './authors.ts';
import { type Effective, effectiveOf, type Read, readConfiguration } from './configuration.ts';
import type { Guard } from './guards.ts';
import { unguarded } from './unguarded.ts';

export interface ChangesOptions {
  place: Place;
  ledger: LedgerService;
  log: Logger;
  blamer: Blamer;
  /** Publishes the current configuration, and goes on trying where it cannot: rejects with the first failure. */
  publish: (causes: string[]) => Promise<void>;
  /** Why a value may not be changed live by hand; undefined where it may. */
  held?: (path: string) => string | undefined;
  /** Who else has a say. */
  guard?: Guard | undefined;
}

/** A change that was refused. */
export interface RefusedChange {
  at: string;
  event: string;
  faults: string[];
}

/** How the running configuration is replaced by another: checked whole, told, stored, and swapped whole. */
export class Changes {
  readonly #options: ChangesOptions;
  /** What this process began on: some values take effect only with the next start. */
  readonly #began: Effective;
  #current: Effective;
  #refused: RefusedChange | undefined;
  #filesStand = true;

  constructor(options: ChangesOptions, effective: Effective) {
    this.#options = options;
    this.#began = effective;
    this.#current = effective;
  }

  get current(): Effective {
    return this.#current;
  }

  /** Whether the files say what runs, as far as is known: not since they were refused. */
  get filesStand(): boolean {
    return this.#filesStand;
  }

  /** The last change that was refused since the running configuration took effect. */
  get refused(): RefusedChange | undefined {
    return this.#refused;
  }

  /** Paths whose values wait for the next start. */
  get restart(): string[] {
    return needsRestart(this.#began.settings, this.#current.settings);
  }

  /**
   * Tells what the files say that they did not when a control last ran; gives the event, for the first snapshot to follow
   * from. `before` are the settings of then, secrets masked.
   */
  async changedSince(before: Record<string, unknown>): Promise<string[]> {
    const after = this.#current.shown;
    const changes = diffConfig({ document: before, secrets: {} }, { document: after, secrets: {} });
    return changes.length === 0 ? [] : [await this.#tell(changes, this.#current, [])];
  }

  /** Reads the file anew. A faulty one is refused, told, and changes nothing. Rejects where the store cannot be written. */
  async reload(): Promise<void> {
    const { ledger, log } = this.#options;
    const { file } = this.#options.place;
    const read = readConfiguration(file, this.#current.overlays);
    if (!read.ok) {
      this.refuse(read.faults);
      return;
    }
    const open = await this.#objections(read.effective, file);
    if (open.length > 0) {
      this.refuse(open);
      return;
    }
    await dropOvertaken(read, ledger, log);
    const causes = await this.#tellRenewed(read.effective);
    const changes = diffConfig(this.#current.config, read.effective.config);
    if (changes.length === 0) {
      log.info({ file }, 'the configuration was read again and says the same');
    } else {
      const restart = needsRestart(this.#current.settings, read.effective.settings);
      causes.push(await this.#tell(changes, read.effective, restart));
    }
    await this.#take(read.effective, causes);
  }

  /** A live change: a part of a configuration, as YAML or JSON. Throws an ApiFault where it is refused. */
  async change(body: string, actor: string): Promise<ConfigChanged> {
    const { ledger, log } = this.#options;
    const event = ledger.event({ type: 'configuration-changed', subject: 'configuration', actor });
    const { files, overlays } = this.#current;
    const made = readChange(body, files, overlays, { actor, at: event.at, event: event.id });
    if (!made.ok) throw this.#refuse(made.faults, actor);
    const { put, remove, overlaid, changes, restart } = made;
    for (const path of [...put.map((overlay) => overlay.path), ...remove]) {
      const held = this.#options.held?.(path);
      if (held !== undefined) throw new ApiFault(409, 'conflict', held);
    }
    const after = { settings: overlaid.config.settings, config: overlaid.config };
    const open = await this.#objections(after, 'request body');
    if (open.length > 0) throw this.#refuse(open, actor);
    event.data = { changes, paths: changes.map(({ path }) => path), restart };
    await ledger.store.overlays.change(put, remove, event);
    await this.#take(effectiveOf(files, overlaid.config, overlaid.applied), [event.id]);
    log.info(
      { event: event.id, actor, changes: changes.map(({ path }) => path), restart },
      'the configuration was changed live',
    );
    return { event: event.id, changes, restart };
  }

  /**
   * A release moves a route: its targets stand over what the files say from now on, and everything is published. What stands
   * already is left as it is. Throws an ApiFault where it is not valid with the rest of the configuration.
   */
  async redirect(wanted: Omit<Redirect, 'at' | 'event'>, causes: string[]): Promise<void> {
    const { ledger, log, place } = this.#options;
    const { release, actor, overFile } = wanted;
    const about = { type: 'configuration-changed', subject: 'configuration', actor, causes };
    const event = ledger.event(about);
    const { files, overlays } = this.#current;
    const disk = overFile ? loadConfig(place.file) : undefined;
    const onDisk = disk?.ok ? disk.config : undefined;
    const made = redirect({ ...wanted, at: event.at, event: event.id }, files, onDisk, overlays);
    if (!made.ok) throw new ApiFault(409, 'conflict', made.faults.map(formatFault).join('\n'));
    const { put, remove, overlaid, changes } = made;
    if (put.length === 0 && remove.length === 0) {
      await this.#options.publish(causes);
      return;
    }
    event.data = { changes, paths: changes.map(({ path }) => path), restart: [], release };
    await ledger.store.overlays.change(put, remove, event);
    log.info({ event: event.id, release, changes: event.data['paths'] }, 'a release moves a route');
    await this.#take(effectiveOf(files, overlaid.config, overlaid.applied), [event.id]);
  }

  /** Keeps what the files said when they were accepted, for a control that starts again while they are faulty. */
  keep(): void {
    const { place, log } = this.#options;
    try {
      keepLastGood(place.data, place.file, this.#current.files.files);
    } catch (error) {
      log.warn({ err: error }, 'what the configuration files say cannot be kept');
    }
  }

  /** What the files say is refused, and told; the configuration that runs stays. */
  refuse(faults: readonly Fault[]): void {
    this.#filesStand = false;
    this.#refuse(faults, this.#fileActor);
  }

  async #objections(after: Pick<Effective, 'settings' | 'config'>, file: string): Promise<Fault[]> {
    const { settings } = this.#current;
    const more = (await this.#options.guard?.objections(settings, after, file)) ?? [];
    return [...unguarded(this.#began.settings, after.settings, file), ...more];
  }

  get #fileActor(): string {
    return `file:${basename(this.#options.place.file)}`;
  }

  /** Certificates and keys whose content has changed since they were read are told; gives the event. */
  async #tellRenewed({ config }: Effective): Promise<string[]> {
    const { ledger, log } = this.#options;
    const { certificates: before } = this.#current.config;
    const files = Object.keys(config.certificates).filter(
      (file) => file in before && before[file] !== config.certificates[file],
    );
    if (files.length === 0) return [];
    const about = { type: 'certificates-renewed', subject: 'configuration', data: { files } };
    const event = ledger.event({ ...about, actor: this.#fileActor });
    await ledger.store.ledger.append([event]);
    log.info({ event: event.id, files }, 'certificates were renewed');
    return [event.id];
  }

  /** What the files changed is in the ledger, with the place and the author of each value, before it acts. */
  async #tell(changes: readonly Change[], effective: Effective, restart: string[]): Promise<string> {
    const { place, ledger, log, blamer } = this.#options;
    const told = await placed(changes, effective.origins, blamer);
    const paths = changes.map(({ path }) => path);
    const event = ledger.event({
      type: 'configuration-changed',
      subject: 'configuration',
      actor: this.#fileActor,
      data: { file: place.file, changes: told, paths, restart },
    });
    await ledger.store.ledger.append([event]);
    log.info({ event: event.id, changes: paths, restart }, 'the configuration has changed');
    return event.id;
  }

  /** From now on this is what is to run: what tells of it is on the disk. */
  async #take(effective: Effective, causes: string[]): Promise<void> {
    const { files } = this.#current;
    this.#current = effective;
    this.#refused = undefined;
    if (effective.files !== files) {
      this.#filesStand = true;
      this.keep();
    }
    await this.#options.publish(causes);
  }

  #refuse(faults: readonly Fault[], actor: string): ApiFault {
    const { ledger, log } = this.#options;
    const words = faults.map(formatFault);
    const event = ledger.append({
      type: 'configuration-refused',
      subject: 'configuration',
      actor,
      data: { faults: words },
    });
    log.error(
      { actor, event: event.id, faults: words },
      'a configuration is refused; the one before it stays',
    );
    this.#refused = { at: event.at, event: event.id, faults: words };
    return new ApiFault(400, 'invalid_request', words.join('\n'), words);
  }
}

/** Live changes that the files have overtaken go, each with a word. Rejects with a StoreError where that cannot be stored. */
export async function dropOvertaken(
  { agreed, refused }: Extract<Read, { ok: true }>,
  ledger: LedgerService,
  log: Logger,
): Promise<void> {
  const overlays = ledger.store.overlays;
  for (const { path } of agreed) {
    const event = { type: 'overlay-agreed', subject: 'configuration', data: { path } };
    await overlays.change([], [path], ledger.event(event));
  }
  for (const { overlay, code, message } of refused) {
    const data = { path: overlay.path, code, message };
    log.warn(data, 'a live change is refused: the file is right');
    const event = { type: 'overlay-refused', subject: 'configuration', causes: [overlay.event], data };
    await overlays.change([], [overlay.path], ledger.event(event));
  }
}

type Told = Change & Pick<StoredOrigin, 'file' | 'line' | 'commit' | 'author' | 'date'>;

/** Changes with the place of each and who wrote it, where it still stands in a file. */
async function placed(
  changes: readonly Change[],
  origins: Record<string, StoredOrigin>,
  blamer: Blamer,
): Promise<Told[]> {
  const named = Object.fromEntries(
    changes.flatMap(({ path }) => (origins[path]?.file === undefined ? [] : [[path, origins[path]]])),
  );
  const written = await withAuthors(named, blamer);
  return changes.map((change) => {
    const { column: _column, ...origin } = written[change.path] ?? {};
    return { ...change, ...origin };
  });
}
