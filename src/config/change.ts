import { isDeepStrictEqual } from 'node:util';
import { type Change, diffConfig, needsRestart } from './diff.ts';
import { type Fault, inOrder } from './faults.ts';
import { type ConfigIo, systemIo } from './files.ts';
import type { LoadedConfig } from './load.ts';
import { maskCredentials } from './masking.ts';
import { applyOverlays, type Overlaid, type Overlay, putOver } from './overlay.ts';
import { isWithin, type Path, readPath, writePath } from './places.ts';
import { holdsReferences } from './references.ts';
import { settingsSchema } from './schema/index.ts';
import { maskSecrets } from './secrets.ts';
import { at, isMap, lookUp, mapLeaves, marked } from './shape.ts';
import type { Sources } from './sources.ts';
import { parseYaml } from './yaml-file.ts';

export type LiveChange =
  | {
      ok: true;
      /** To be stored, and to be removed from the store (by path), in one transaction. */
      put: Overlay[];
      remove: string[];
      /** Everything as it is with the change. */
      overlaid: Overlaid;
      changes: Change[];
      /** Paths whose new values wait until Armature is started again. */
      restart: string[];
    }
  | { ok: false; faults: Fault[] };

/** Who asks for a change, when (ISO 8601), and the event that will tell of it. */
export interface ChangeBy {
  actor: string;
  at: string;
  event: string;
}

/** What a fault in a live change names as its file. */
const BODY = 'request body';

/**
 * Reads a live change: a part of a configuration, YAML or JSON, that is put over the running one. Maps are merged by
 * key, everything else is replaced; null takes back what was changed live at its path and below. All of it is checked
 * together with the rest, and one fault refuses the whole. `files` is what the files say, `overlays` what is in the store.
 */
export function readChange(
  body: string,
  files: LoadedConfig,
  overlays: readonly Overlay[],
  by: ChangeBy,
  io: ConfigIo = systemIo,
): LiveChange {
  const parsed = parseYaml(BODY, body, undefined);
  const sources = files.sources.withPlaces(parsed.places);
  sources.addLines(BODY, parsed.lines);
  const faults = parsed.faults.map(({ fault, span }) => sources.withExcerpt(fault, span));
  if (parsed.broken) return { ok: false, faults };
  if (!isMap(parsed.data) || Object.keys(parsed.data).length === 0) {
    const message = 'expected a part of a configuration, such as {"routes": {"chat": {"deadline": "3s"}}}';
    return { ok: false, faults: [{ code: 'bad-value', file: BODY, line: 1, column: 1, path: '', message }] };
  }
  const before = applyOverlays(files, overlays, io);
  const leaves = leavesOf(parsed.data, []);
  const removed = overlays.filter(({ path }) => leaves.some((leaf) => replaces(leaf, readPath(path) ?? [])));
  faults.push(...futile(leaves, overlays, sources), ...rooted(leaves, sources));

  const shown = maskSecrets(files.document, files.secrets);
  const wanted = leaves.filter(({ value }) => value !== null).map((leaf) => toOverlay(leaf, shown, by));
  const kept = before.applied.filter((overlay) => !removed.includes(overlay));
  const made = putOver(files, [...kept, ...wanted], io, sources);
  if (!made.ok) return { ok: false, faults: inOrder([...faults, ...made.faults], [BODY]) };
  faults.push(...literalSecrets(wanted, made.config.document, sources));
  if (faults.length > 0) return { ok: false, faults };

  // What is so without it needs no overlay: the files say it, or say nothing and it is the default.
  const without = removed.length === 0 ? before.config : applyOverlays(files, kept, io).config;
  const put = wanted.filter((overlay) => !saysTheSame(overlay, without, made.config));
  return {
    ok: true,
    put,
    remove: removed.map(({ path }) => path).filter((path) => put.every((overlay) => overlay.path !== path)),
    overlaid: { config: made.config, applied: [...kept, ...put], agreed: [], refused: [] },
    changes: diffConfig(before.config, made.config),
    restart: needsRestart(before.config.settings, made.config.settings),
  };
}

function saysTheSame(
  { path: text, value, over }: Overlay,
  without: LoadedConfig,
  config: LoadedConfig,
): boolean {
  if (isDeepStrictEqual(value, over)) return true;
  const path = readPath(text) ?? [];
  const [before, after] = [without, config].map(({ settings }) => path.reduce<unknown>(at, settings));
  return over === undefined && after !== undefined && isDeepStrictEqual(before, after);
}

interface Leaf {
  path: Path;
  value: unknown;
}

/** Everything in a part of a configuration that is no map, or an empty one. */
function leavesOf(value: unknown, path: Path): Leaf[] {
  if (!isMap(value) || Object.keys(value).length === 0) return [{ path, value }];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

/** Whether a value, once put, leaves nothing of what was put at a path before. */
function replaces({ path, value }: Leaf, before: Path): boolean {
  if (isMap(value)) return false;
  return isWithin(before, path) || (value !== null && isWithin(path, before));
}

function toOverlay({ path, value }: Leaf, shown: unknown, { actor, at: when, event }: ChangeBy): Overlay {
  const over = path.reduce<unknown>(at, shown);
  return { path: writePath(path), value, ...(over !== undefined && { over }), actor, at: when, event };
}

/** Refuses to take back what was never changed. */
function futile(leaves: readonly Leaf[], overlays: readonly Overlay[], sources: Sources): Fault[] {
  const nothing = leaves.filter(
    ({ path, value }) =>
      value === null && !overlays.some((overlay) => isWithin(readPath(overlay.path) ?? [], path)),
  );
  return nothing.map(({ path }) => {
    const message = 'null takes back a live change, and nothing was changed live here';
    return sources.fault({ code: 'unknown-name', path, at: 'key', message });
  });
}

/** Refuses to move what live changes are themselves kept in. */
function rooted(leaves: readonly Leaf[], sources: Sources): Fault[] {
  const moved = leaves.filter(({ path, value }) => value !== null && isWithin(path, ['store', 'url']));
  return moved.map(({ path }) => {
    const message = 'live changes are kept in this store: it can be changed in the file only';
    return sources.fault({ code: 'contradiction', path, at: 'key', message });
  });
}

/** Refuses secrets that are written out: what is changed live is kept in the store, and no secret gets there. */
function literalSecrets(overlays: readonly Overlay[], document: unknown, sources: Sources): Fault[] {
  const faults: Fault[] = [];
  for (const { path: text, value } of overlays) {
    const base = readPath(text) ?? [];
    mapLeaves(lookUp(settingsSchema, document, base).schema, value, (leaf, schema, inner) => {
      if (typeof leaf !== 'string' || holdsReferences(leaf)) return leaf;
      const secret = (schema && marked(schema, 'secret')) || maskCredentials(leaf) !== leaf;
      if (secret) {
        const message = 'a secret cannot be given in a live change: it would be kept in the store';
        const hint = 'write ${env:NAME} or ${file:PATH} into the configuration file';
        faults.push(
          sources.fault({ code: 'bad-value', path: [...base, ...inner], at: 'key', message, hint }),
        );
      }
      return leaf;
    });
  }
  return faults;
}
