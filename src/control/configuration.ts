import { type Fault, formatFault, formatPlace } from '../config/faults.ts';
import { lastGoodIo } from '../config/last-good.ts';
import { type LoadedConfig, loadConfig, type Origin } from '../config/load.ts';
import { applyOverlays, type RefusedOverlay } from '../config/overlay.ts';
import type { Settings } from '../config/schema/index.ts';
import { maskSecrets } from '../config/secrets.ts';
import type { StoredOrigin, StoredOverlay } from '../store/contracts.ts';
import type { Place } from '../supervisor/parts.ts';

/** A configuration that is whole and checked: what may run. */
export interface Effective {
  settings: Settings;
  /** The settings with secrets masked: the form that is kept and shown. */
  shown: Record<string, unknown>;
  origins: Record<string, StoredOrigin>;
  notices: { path: string; place: string; message: string }[];
  /** What the files say alone. */
  files: LoadedConfig;
  /** The files with the overlays over them. */
  config: LoadedConfig;
  /** What was changed live and stands. */
  overlays: StoredOverlay[];
}

export type Read =
  | {
      ok: true;
      effective: Effective;
      /** Overlays that no longer stand: the files say the same, or say something else. */
      agreed: StoredOverlay[];
      refused: RefusedOverlay[];
    }
  | { ok: false; faults: Fault[] };

/** Reads the file anew and puts over it what was changed live. Never throws for what a file says. */
export function readConfiguration(file: string, overlays: readonly StoredOverlay[]): Read {
  const loaded = loadConfig(file);
  return loaded.ok ? overlaid(loaded.config, overlays) : loaded;
}

/** Puts over what the files say what was changed live. */
export function overlaid(
  files: LoadedConfig,
  overlays: readonly StoredOverlay[],
): Extract<Read, { ok: true }> {
  const { config, applied, agreed, refused } = applyOverlays(files, overlays);
  return { ok: true, effective: effectiveOf(files, config, applied), agreed, refused };
}

/**
 * What control begins on: what the files say, or, where they are faulty, what was accepted of them last. The faults are
 * told then, for a faulty file is refused whenever it is read. Throws, with the faults, where there is nothing to begin on.
 */
export function readBeginning({ data, file }: Place): { files: LoadedConfig; faults: Fault[] } {
  const now = loadConfig(file);
  if (now.ok) return { files: now.config, faults: [] };
  const io = lastGoodIo(data, file);
  const before = io && loadConfig(file, io);
  if (before?.ok) return { files: before.config, faults: now.faults };
  throw new Error(now.faults.map(formatFault).join('\n'));
}

export function effectiveOf(files: LoadedConfig, config: LoadedConfig, overlays: StoredOverlay[]): Effective {
  const { settings, secrets, origins, notices } = config;
  return {
    settings,
    shown: maskSecrets(settings as Record<string, unknown>, secrets),
    origins: Object.fromEntries(
      Object.entries(origins).map(([path, origin]) => [path, storedOrigin(origin, overlays)]),
    ),
    notices: notices.map((notice) => ({
      path: notice.path,
      place: formatPlace(notice),
      message: notice.message,
    })),
    files,
    config,
    overlays,
  };
}

function storedOrigin(origin: Origin, overlays: readonly StoredOverlay[]): StoredOrigin {
  if (origin.kind === 'file') {
    const { file, line, column } = origin;
    return { file, line, column };
  }
  const { actor, at } = origin;
  const overlay = overlays.find((it) => it.actor === actor && it.at === at);
  return {
    actor,
    date: at,
    ...(overlay && { event: overlay.event }),
    ...(overlay?.release !== undefined && { release: overlay.release }),
  };
}
