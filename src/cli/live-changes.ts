import { resolve } from 'node:path';
import type { LoadedConfig } from '../config/load.ts';
import { applyOverlays, type Overlaid } from '../config/overlay.ts';
import type { StoredOverlay } from '../store/contracts.ts';
import { overlaysAtRest } from '../store/sqlite/at-rest.ts';

/**
 * What a start in a data directory would make of a configuration: the files with the live changes that are kept there.
 * `unread` says why they could not be read; the files alone count then.
 */
export function withLiveChanges(files: LoadedConfig, data: string): Overlaid & { unread?: string } {
  const path = storeIn(files, data);
  let overlays: StoredOverlay[];
  try {
    overlays = overlaysAtRest(path);
  } catch (error) {
    const unread = `${path} cannot be read: ${(error as Error).message}`;
    return { config: files, applied: [], agreed: [], refused: [], unread };
  }
  return applyOverlays(files, overlays);
}

/** Where the store of a data directory is, which the configuration names. */
export function storeIn({ settings }: LoadedConfig, data: string): string {
  const { url } = settings.store;
  return resolve(data, url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : 'state.db');
}
