import type { Fault, Notice } from '../config/faults.ts';
import type { LoadedConfig } from '../config/load.ts';
import { readReference } from '../releases/registry/reference.ts';
import { isVersionAtRest } from '../store/sqlite/at-rest.ts';
import { storeIn } from './live-changes.ts';

/**
 * Looks for the versions that backends name in the store of a data directory. One that is not there is a fault; where
 * there is no store yet, or it cannot be read, nothing is known, and that is said.
 */
export function lookUpVersions(config: LoadedConfig, data: string): { faults: Fault[]; notices: Notice[] } {
  const store = storeIn(config, data);
  const [faults, notices]: [Fault[], Notice[]] = [[], []];
  for (const [backend, { version }] of Object.entries(config.settings.backends)) {
    const reference = version === undefined ? undefined : readReference(version);
    if (!reference) continue;
    const path = ['backends', backend, 'version'];
    const known = lookUp(store, reference);
    if (known === true) continue;
    if (known === false) {
      const message = `there is no version ${version} in the registry of ${data}`;
      const expected = 'a version that `armature registry ls` tells';
      faults.push(
        config.sources.fault({ code: 'unknown-name', path, at: 'value', message, expected, found: version! }),
      );
    } else {
      const { file, line, column } = config.sources.locate(path, 'value');
      const message = `${version} cannot be looked up: ${known ?? `there is no registry in ${data} yet`}`;
      notices.push({ code: 'not-looked-up', file, line, column, path: path.join('.'), message });
    }
  }
  return { faults, notices };
}

/** Whether it is there; in words, or undefined, where that cannot be known. */
function lookUp(
  store: string,
  reference: Parameters<typeof isVersionAtRest>[1],
): boolean | string | undefined {
  try {
    return isVersionAtRest(store, reference);
  } catch (error) {
    return `${store} cannot be read: ${(error as Error).message}`;
  }
}
