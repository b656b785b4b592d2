import { isDeepStrictEqual } from 'node:util';
import { formatPath, type Path } from './places.ts';
import { maskSecrets, type Secrets } from './secrets.ts';
import { isMap, select } from './shape.ts';

/** One value that two configurations do not share; absent where it is not set. Lists are compared whole. */
export interface Change {
  path: string;
  before?: unknown;
  after?: unknown;
}

/** What can be compared: what is written, and which of it is secret. */
export interface Comparable {
  document: Record<string, unknown>;
  secrets: Secrets;
}

/** What changes from one configuration to the other, as written, secrets masked. Defaults that nobody wrote are in neither. */
export function diffConfig(before: Comparable, after: Comparable): Change[] {
  const changes: Change[] = [];
  const shownBefore = maskSecrets(before.document, before.secrets);
  const shownAfter = maskSecrets(after.document, after.secrets);
  const walk = (a: unknown, b: unknown, shownA: unknown, shownB: unknown, path: Path): void => {
    if (isMap(a) && isMap(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
        const of = (map: unknown): unknown => (isMap(map) && Object.hasOwn(map, key) ? map[key] : undefined);
        walk(of(a), of(b), of(shownA), of(shownB), [...path, key]);
      }
      return;
    }
    if (isDeepStrictEqual(a, b)) return;
    // A secret that changed behind the same reference.
    const hidden = isDeepStrictEqual(shownA, shownB);
    changes.push({
      path: formatPath(path),
      ...(a !== undefined && { before: shownA }),
      ...(b !== undefined && { after: hidden ? `${String(shownB)} (another value)` : shownB }),
    });
  };
  walk(before.document, after.document, shownBefore, shownAfter, []);
  return changes;
}

/** What is read when a process starts, and not again. */
const AT_START = [
  'gateway.listen',
  'gateway.tls',
  'admin.listen',
  'admin.tls',
  'store.url',
  'coordination.url',
  'registry',
];

/** Which settings of a changed configuration take effect only when Armature is started again. */
export function needsRestart(before: unknown, after: unknown): string[] {
  return AT_START.filter((path) => {
    const at = (settings: unknown): unknown => select(settings, path.split('.'))[0]?.value;
    return !isDeepStrictEqual(at(before), at(after));
  });
}
