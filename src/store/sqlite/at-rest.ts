import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { StoredOverlay } from '../contracts.ts';

/**
 * The overlays in the file at `path`, which is only read, whether control has it open or not; none where there is no
 * file. Throws SQLite's error where it cannot be read.
 */
export function overlaysAtRest(path: string): StoredOverlay[] {
  const read = (db: DatabaseSync) =>
    db
      .prepare('SELECT body FROM overlays ORDER BY path')
      .all()
      .map(({ body }) => JSON.parse(String(body)) as StoredOverlay);
  return atRest(path, 'overlays', read) ?? [];
}

/** Whether there is such a version, by number or by alias, in the file at `path`; undefined where there is no such file, or no registry in it yet. */
export function isVersionAtRest(
  path: string,
  reference: { model: string; number: number } | { model: string; alias: string },
): boolean | undefined {
  return atRest(path, 'registry_versions', (db) =>
    'number' in reference
      ? db
          .prepare('SELECT 1 FROM registry_versions WHERE model = ? AND number = ?')
          .get(reference.model, reference.number) !== undefined
      : db
          .prepare('SELECT 1 FROM registry_aliases WHERE model = ? AND alias = ?')
          .get(reference.model, reference.alias) !== undefined,
  );
}

function atRest<Result>(path: string, table: string, read: (db: DatabaseSync) => Result): Result | undefined {
  if (!existsSync(path)) return undefined;
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const found = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").all(table);
    return found.length === 0 ? undefined : read(db);
  } finally {
    db.close();
  }
}
