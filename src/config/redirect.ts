import { isDeepStrictEqual } from 'node:util';
import { type Change, diffConfig } from './diff.ts';
import type { Fault } from './faults.ts';
import { type ConfigIo, systemIo } from './files.ts';
import type { LoadedConfig } from './load.ts';
import { applyOverlays, type Overlaid, type Overlay, putOver } from './overlay.ts';
import { writePath } from './places.ts';
import { maskSecrets } from './secrets.ts';
import { at } from './shape.ts';
import { sameTargets } from './targets.ts';

export interface Target {
  backend: string;
  weight: number;
}

/** What a release wants of a route: these targets, whoever wants it, when (ISO 8601), and the event that will tell of it. */
export interface Redirect {
  route: string;
  targets: readonly Target[];
  release: string;
  actor: string;
  at: string;
  event: string;
  /** It is an abort or a rollback, which stands over whatever the files say. */
  overFile: boolean;
}

export type Redirected =
  | { ok: true; put: Overlay[]; remove: string[]; overlaid: Overlaid; changes: Change[] }
  | { ok: false; faults: Fault[] };

export const targetsPath = (route: string): string => writePath(['routes', route, 'targets']);

/** What the files say of a route's targets, as it is written; undefined where they say nothing. */
export function writtenTargets(files: LoadedConfig, route: string): unknown {
  return ['routes', route, 'targets'].reduce<unknown>(at, maskSecrets(files.document, files.secrets));
}

/**
 * Puts a route's targets over everything else that is said of them. Where the files say the same, nothing has to stand over
 * them. `disk` is what the files say now, where that is not what was read of them last; they count for what stands over any
 * file. Nothing is put or removed where the same stands already.
 */
export function redirect(
  wanted: Redirect,
  files: LoadedConfig,
  disk: LoadedConfig | undefined,
  overlays: readonly Overlay[],
  io: ConfigIo = systemIo,
): Redirected {
  const { route, targets, release, actor, at: when, event, overFile } = wanted;
  const path = targetsPath(route);
  const over = writtenTargets(files, route);
  const value = targets.map(({ backend, weight }) => ({ backend, weight }));
  const before = applyOverlays(files, overlays, io);
  const stands = before.applied.find((overlay) => overlay.path === path);
  const kept = before.applied.filter((overlay) => overlay.path !== path);
  const agreed =
    sameTargets(over, value) && (!overFile || !disk || sameTargets(writtenTargets(disk, route), value));
  const overlay: Overlay = {
    path,
    value,
    ...(over !== undefined && { over }),
    actor,
    release,
    ...(overFile && { overFile: true as const }),
    at: when,
    event,
  };
  const same =
    stands?.release === release &&
    isDeepStrictEqual(stands.value, value) &&
    Boolean(stands.overFile) === overFile;
  const put = agreed || same ? [] : [overlay];
  const applied = agreed ? kept : [...kept, same ? stands! : overlay];
  const made = putOver(files, applied, io);
  if (!made.ok) return made;
  return {
    ok: true,
    put,
    remove: agreed && stands ? [path] : [],
    overlaid: { config: made.config, applied, agreed: [], refused: [] },
    changes: diffConfig(before.config, made.config),
  };
}
