import type { RegistryStore, StoredArtifact, StoredVersion } from '../registry.ts';
import type { Database, Row } from './database.ts';

const DURABLE = { durable: true };

/** What is known of content: where it lies, who has it, and what is to be tidied up. */
export function contentIn(
  database: () => Database,
): Pick<RegistryStore, 'addArtifact' | 'artifact' | 'usersOf' | 'unused' | 'forget'> {
  return {
    async addArtifact({ sha256, bytes, place, inspection, storedMs }) {
      const db = database();
      db.transaction(
        () =>
          db.run(
            'INSERT INTO registry_artifacts (sha256, bytes, place, inspection, stored_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT (sha256) DO UPDATE SET place = excluded.place',
            sha256,
            bytes,
            place,
            JSON.stringify(inspection),
            storedMs,
          ),
        DURABLE,
      );
    },
    async artifact(sha256) {
      const row = database().get('SELECT * FROM registry_artifacts WHERE sha256 = ?', sha256);
      return row && readArtifact(row);
    },
    async usersOf(sha256) {
      const rows = database().all(
        `SELECT DISTINCT model, number, state FROM registry_files JOIN registry_versions USING (model, number)
         WHERE sha256 = ? ORDER BY model, number`,
        sha256,
      );
      return rows.map(({ model, number, state }) => ({
        model: String(model),
        number: Number(number),
        state: state as StoredVersion['state'],
      }));
    },
    async unused(beforeMs, limit) {
      const rows = database().all(
        `SELECT * FROM registry_artifacts WHERE stored_ms < ? AND sha256 NOT IN (SELECT sha256 FROM registry_files)
         ORDER BY stored_ms LIMIT ?`,
        beforeMs,
        limit,
      );
      return rows.map(readArtifact);
    },
    async forget(sha256) {
      const db = database();
      return db.transaction(() => forget(db, sha256), DURABLE);
    },
  };
}

export function leftoversIn(
  database: () => Database,
): Pick<RegistryStore, 'addLeftover' | 'leftovers' | 'removeLeftover'> {
  return {
    async addLeftover(sha256) {
      const db = database();
      db.transaction(() => addLeftover(db, sha256), DURABLE);
    },
    async leftovers(limit, after = '') {
      const rows = database().all(
        'SELECT sha256 FROM registry_leftovers WHERE sha256 > ? ORDER BY sha256 LIMIT ?',
        after,
        limit,
      );
      return rows.map(({ sha256 }) => String(sha256));
    },
    async removeLeftover(sha256) {
      database().run('DELETE FROM registry_leftovers WHERE sha256 = ?', sha256);
    },
  };
}

function readArtifact(row: Row): StoredArtifact {
  return {
    sha256: String(row.sha256),
    bytes: Number(row.bytes),
    place: row.place as StoredArtifact['place'],
    inspection: JSON.parse(String(row.inspection)) as unknown,
    storedMs: Number(row.stored_ms),
  };
}

/** Content that has lost its last version goes with it. */
export function forgetUnused(db: Database, sha256: string): StoredArtifact[] {
  const row = db.get('SELECT * FROM registry_artifacts WHERE sha256 = ?', sha256);
  return row && forget(db, sha256) ? [readArtifact(row)] : [];
}

function forget(db: Database, sha256: string): boolean {
  const gone = db.run(
    'DELETE FROM registry_artifacts WHERE sha256 = ? AND sha256 NOT IN (SELECT sha256 FROM registry_files)',
    sha256,
  );
  if (gone === 0) return false;
  addLeftover(db, sha256);
  return true;
}

function addLeftover(db: Database, sha256: string): void {
  db.run('INSERT INTO registry_leftovers (sha256) VALUES (?) ON CONFLICT DO NOTHING', sha256);
}
