import { isDeepStrictEqual } from 'node:util';
import type { Fault } from './faults.ts';
import { type ConfigIo, systemIo } from './files.ts';
import { assembleConfig, type Loaded, type LoadedConfig } from './load.ts';
import { isWithin, type Path, type Place, Places, readPath } from './places.ts';
import { holdsReferences, referencesIn, resolveReferences, UNRESOLVED } from './references.ts';
import { maskSecrets } from './secrets.ts';
import { at, isMap } from './shape.ts';
import type { Sources } from './sources.ts';
import { sameTargets } from './targets.ts';

/**
 * What is changed live stands over the files as overlays, one for each value. They are kept in the store as they were
 * written, references unresolved, so that no secret gets there.
 */
export interface Overlay {
  /** As `writePath` gives it, such as `routes.chat.deadline`. */
  path: string;
  /** Anything but a map with members; a list stands for the whole list. */
  value: unknown;
  /** What the files said at this path when the overlay was put, secrets masked; absent where they said nothing. */
  over?: unknown;
  actor: string;
  release?: string;
  /** Of an abort or a rollback: it stands whatever the files say, until they say the same. */
  overFile?: true;
  /** ISO 8601. */
  at: string;
  /** The event that tells of the change; overlays of one change share it. */
  event: string;
}

export interface RefusedOverlay {
  overlay: Overlay;
  /** `file-edited`: the file says something else at this path since; `faulty`: with it the configuration is not valid. */
  code: 'file-edited' | 'faulty';
  /** One sentence for people. */
  message: string;
}

export interface Overlaid {
  /** The files with the applied overlays over them. */
  config: LoadedConfig;
  applied: Overlay[];
  /** The files say the same by now: these have nothing to do any more. */
  agreed: Overlay[];
  refused: RefusedOverlay[];
}

/**
 * Puts overlays over what the files say. One whose place in the files was edited since it was put is refused, and so
 * is a change with which the configuration would not be valid: the files are always right. Only what a release has gone
 * back to stands over an edited file as well.
 */
export function applyOverlays(
  files: LoadedConfig,
  overlays: readonly Overlay[],
  io: ConfigIo = systemIo,
): Overlaid {
  const refused: RefusedOverlay[] = [];
  const agreed: Overlay[] = [];
  let standing: Overlay[] = [];
  const shown = maskSecrets(files.document, files.secrets);
  for (const overlay of overlays) {
    const now = (readPath(overlay.path) ?? []).reduce<unknown>(at, shown);
    if (agree(now, overlay)) agreed.push(overlay);
    else if (overlay.overFile || isDeepStrictEqual(now, overlay.over)) standing.push(overlay);
    else refused.push({ overlay, code: 'file-edited', message: edited(overlay, now) });
  }
  for (;;) {
    const tried = putOver(files, standing, io);
    if (tried.ok) return { config: tried.config, applied: standing, agreed, refused };
    if (standing.length === 0) throw new Error('the files were valid before overlays were put over them');
    const causes = tried.faults.map(({ path, message }) => `${path}: ${message}`).join('; ');
    const guilty = blamed(standing, tried.faults);
    for (const overlay of standing.filter(({ event }) => event === guilty)) {
      const message = `${overlay.path} was changed live by ${overlay.actor} at ${overlay.at}, which is not valid with the file: ${causes}`;
      refused.push({ overlay, code: 'faulty', message });
    }
    standing = standing.filter(({ event }) => event !== guilty);
  }
}

/** A release writes targets with weights of its own making: shares are what counts. */
function agree(now: unknown, { value, release }: Overlay): boolean {
  return isDeepStrictEqual(now, value) || (release !== undefined && sameTargets(now, value));
}

function edited({ path, value, over, actor, at: when }: Overlay, now: unknown): string {
  const told = (said: unknown): string => (said === undefined ? 'nothing' : JSON.stringify(said));
  return `${path} was changed live to ${told(value)} by ${actor} at ${when}, when the file said ${told(over)}; the file was edited since, says ${told(now)}, and is right`;
}

/** The event of the change to give up: one that a fault stands in, or else the newest. */
function blamed(standing: readonly Overlay[], faults: readonly Fault[]): string {
  const named = standing.find((overlay) => faults.some(({ file }) => file === placeName(overlay)));
  return (named ?? standing.reduce((a, b) => (b.at >= a.at ? b : a))).event;
}

/** What a fault in an overlay names as its file. */
const placeName = ({ actor, at: when }: Overlay): string =>
  when === '' ? actor : `live change by ${actor} at ${when}`; // a value of the command line has no time

/**
 * The configuration that files and overlays make together. `sources` say where the overlays stand, where that is known
 * better than by who put them.
 */
export function putOver(
  files: LoadedConfig,
  overlays: readonly Overlay[],
  io: ConfigIo,
  body?: Sources,
): Loaded {
  const entries = overlays
    .map((overlay) => ({ overlay, path: readPath(overlay.path) ?? [overlay.path] }))
    .sort((a, b) => a.path.length - b.path.length);
  const places = new Places();
  const document = structuredClone(files.document);
  const faults: Fault[] = [];
  const sources = (body ?? files.sources).withPlaces(places);
  const limited = { ...io, allowed: referencesOf(files) };
  for (const { overlay, path } of entries) {
    addPlaces(places, overlay, path, body?.places);
    setAt(document, path, resolveIn(overlay.value, path, sources, limited, faults));
  }
  for (const { path, place } of files.sources.places.entries()) {
    if (!entries.some((entry) => isWithin(path, entry.path))) places.add(path, place);
  }
  // Maps that only overlays make.
  for (const { overlay, path } of entries) {
    for (let length = path.length - 1; length > 0; length--) {
      places.add(path.slice(0, length), placeOf(overlay, path.slice(0, length), {}, body?.places));
    }
  }
  const made = assembleConfig({ document, sources, files: files.files, incomplete: false }, io);
  if (faults.length === 0) return made;
  return { ok: false, faults: [...faults, ...(made.ok ? [] : made.faults)] };
}

/** The references that the files use: a live change may use no others, and so can make Armature read nothing new. */
function referencesOf({ sources }: LoadedConfig): Set<string> {
  const used = new Set<string>();
  for (const { place } of sources.places.entries()) {
    for (const reference of referencesIn(place.written ?? '')) used.add(reference);
  }
  return used;
}

function resolveIn(value: unknown, path: Path, sources: Sources, io: ConfigIo, faults: Fault[]): unknown {
  if (Array.isArray(value)) {
    return value.map((item, index) => resolveIn(item, [...path, index], sources, io, faults));
  }
  if (isMap(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, resolveIn(item, [...path, key], sources, io, faults)]),
    );
  }
  if (typeof value !== 'string' || !holdsReferences(value)) return value;
  const resolved = resolveReferences(value, sources.main, io);
  if ('text' in resolved) return resolved.text;
  faults.push(sources.fault({ code: 'reference', path, at: 'value', ...resolved.fault }));
  return UNRESOLVED;
}

/** Says where an overlay and what is in it stands. */
function addPlaces(places: Places, overlay: Overlay, path: Path, body: Places | undefined): void {
  const add = (where: Path, value: unknown): void => {
    places.add(where, placeOf(overlay, where, value, body));
    if (Array.isArray(value)) for (const [index, item] of value.entries()) add([...where, index], item);
    else if (isMap(value)) for (const [key, item] of Object.entries(value)) add([...where, key], item);
  };
  add(path, overlay.value);
}

function placeOf(overlay: Overlay, path: Path, value: unknown, body: Places | undefined): Place {
  const told = body?.get(path);
  return {
    key: told?.key,
    value: told?.value ?? { file: placeName(overlay), line: 0, column: 0, length: 1 },
    written: typeof value === 'string' && holdsReferences(value) ? value : undefined,
    live: { actor: overlay.actor, at: overlay.at },
  };
}

/** Puts a value at a path, and maps on the way to it where there are none. */
function setAt(document: Record<string, unknown>, path: Path, value: unknown): void {
  let holder: Record<string | number, unknown> | unknown[] = document;
  for (const [index, segment] of path.slice(0, -1).entries()) {
    let next: unknown = at(holder, segment);
    if (!isMap(next) && !(Array.isArray(next) && typeof path[index + 1] === 'number')) {
      next = {};
      (holder as Record<string | number, unknown>)[segment] = next;
    }
    holder = next as Record<string, unknown>;
  }
  const last = path.at(-1)!;
  // An empty map says that there is one; what is in it already stays.
  if (isMap(value) && Object.keys(value).length === 0 && isMap(at(holder, last))) return;
  (holder as Record<string | number, unknown>)[last] = value;
}
