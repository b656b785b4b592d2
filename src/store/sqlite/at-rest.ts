import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { StoredOverlay } from '../contracts.ts';

/**
 * The overlays in the file at `path`, which is only read, whether control has it open or not; none where there is no
 * file. Throws SQLite's error where it cannot be read.
 */
export function overlaysAtRest(path: string): StoredOverlay[] {
  if (!existsSync(path)) return [];
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const tables = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'overlays'").all();
    if (tables.length === 0) return [];
    const rows = db.prepare('SELECT body FROM overlays ORDER BY path').all();
    return rows.map(({ body }) => JSON.parse(String(body)) as StoredOverlay);
  } finally {
    db.close();
  }
}
