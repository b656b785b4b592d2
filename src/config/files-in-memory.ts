import { Buffer } from 'node:buffer';
import { join, matchesGlob, relative, resolve } from 'node:path';
import type { ConfigIo } from './files.ts';

/** Configuration files that are on no disk: what tests and simulations load. Names are taken as `resolve` takes them. */
export function filesInMemory(
  files: Record<string, string | Uint8Array>,
  env: Record<string, string> = {},
): ConfigIo {
  const byPath = new Map(Object.entries(files).map(([name, content]) => [resolve(name), content]));
  return {
    env,
    readFile: (path, bytesMax) => {
      const content = byPath.get(resolve(path));
      if (content === undefined) throw Object.assign(new Error(`no file ${path}`), { code: 'ENOENT' });
      return Buffer.from(content).subarray(0, bytesMax);
    },
    glob: (pattern, folder) =>
      [...byPath.keys()]
        .filter((path) => matchesGlob(path, resolve(join(folder, pattern))))
        .map((path) => relative(resolve(folder), path))
        .sort(),
  };
}
