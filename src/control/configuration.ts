import { type Fault, formatPlace } from '../config/faults.ts';
import { type LoadedConfig, loadConfig, type Origin } from '../config/load.ts';
import { applyOverlays, type RefusedOverlay } from '../config/overlay.ts';
import type { Settings } from '../config/schema/index.ts';
import { maskSecrets } from '../config/secrets.ts';
import type { StoredOrigin, StoredOverlay } from '../store/contracts.ts';

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
  if (!loaded.ok) return loaded;
  const { config, applied, agreed, refused } = applyOverlays(loaded.config, overlays);
  return { ok: true, effective: effectiveOf(loaded.config, config, applied), agreed, refused };
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
