import { createHash } from 'node:crypto';
import {
  KEYS_MAX,
  type Keys,
  OVERLAYS_MAX,
  type Overlays,
  type Snapshots,
  type StoredKey,
  type StoredOrigin,
  type StoredOverlay,
  type StoredSnapshot,
  StoreError,
} from '../contracts.ts';
import type { Database, Row } from './database.ts';
import { insert } from './ledger.ts';

/** Keys, overlays and snapshots: what is on the disk, together with its event, before it acts. */

const DURABLE = { durable: true };

export function sqliteKeys(database: () => Database): Keys {
  return {
    async create(key, event) {
      const db = database();
      db.transaction(() => {
        const count = Number(db.get('SELECT count(*) AS count FROM keys')!.count);
        if (count >= KEYS_MAX) throw new StoreError('conflict', `there are ${KEYS_MAX} keys already`);
        db.run(
          'INSERT INTO keys (id, tenant, name, hash, created_at, created_by) VALUES (?, ?, ?, ?, ?, ?)',
          key.id,
          key.tenant,
          key.name,
          key.hash,
          key.createdAt,
          key.createdBy,
        );
        insert(db, [event]);
      }, DURABLE);
    },
    async revoke(id, event) {
      const db = database();
      return db.transaction(() => {
        const live = db.run(
          'UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL',
          event.at,
          id,
        );
        if (live === 0) return false;
        insert(db, [event]);
        return true;
      }, DURABLE);
    },
    async get(id) {
      const row = database().get('SELECT * FROM keys WHERE id = ?', id);
      return row && readKey(row);
    },
    async list() {
      return database().all('SELECT * FROM keys ORDER BY created_at, id').map(readKey);
    },
  };
}

function readKey(row: Row): StoredKey {
  return {
    id: String(row.id),
    tenant: String(row.tenant),
    name: String(row.name),
    hash: String(row.hash),
    createdAt: String(row.created_at),
    createdBy: String(row.created_by),
    ...(row.revoked_at == null ? {} : { revokedAt: String(row.revoked_at) }),
  };
}

export function sqliteOverlays(database: () => Database): Overlays {
  return {
    async change(put, remove, event) {
      const db = database();
      db.transaction(() => {
        for (const path of remove) db.run('DELETE FROM overlays WHERE path = ?', path);
        for (const overlay of put) {
          db.run(
            'INSERT INTO overlays (path, body) VALUES (?, ?) ON CONFLICT (path) DO UPDATE SET body = excluded.body',
            overlay.path,
            JSON.stringify(overlay),
          );
        }
        const count = Number(db.get('SELECT count(*) AS count FROM overlays')!.count);
        if (count > OVERLAYS_MAX) throw new StoreError('conflict', `more than ${OVERLAYS_MAX} overlays`);
        insert(db, [event]);
      }, DURABLE);
    },
    async list() {
      const rows = database().all('SELECT body FROM overlays ORDER BY path');
      return rows.map((row) => JSON.parse(String(row.body)) as StoredOverlay);
    },
  };
}

const SNAPSHOT = `SELECT number, event, at, settings.settings AS settings, origins
  FROM snapshots JOIN settings ON settings.id = snapshots.settings`;

export function sqliteSnapshots(database: () => Database): Snapshots {
  return {
    async publish(snapshot, event) {
      const db = database();
      const settings = JSON.stringify(snapshot.settings);
      const origins = JSON.stringify(snapshot.origins);
      const hash = createHash('sha256').update(settings).update('\n').update(origins).digest('hex');
      db.transaction(() => {
        db.run(
          'INSERT INTO settings (hash, settings, origins) VALUES (?, ?, ?) ON CONFLICT (hash) DO NOTHING',
          hash,
          settings,
          origins,
        );
        db.run(
          'INSERT INTO snapshots (number, event, at, settings) SELECT ?, ?, ?, id FROM settings WHERE hash = ?',
          snapshot.number,
          snapshot.event,
          snapshot.at,
          hash,
        );
        insert(db, [event]);
      }, DURABLE);
    },
    async explain(number: number, origins: Record<string, StoredOrigin>) {
      database().run(
        'UPDATE settings SET origins = ? WHERE id = (SELECT settings FROM snapshots WHERE number = ?)',
        JSON.stringify(origins),
        number,
      );
    },
    async get(number) {
      const row = database().get(`${SNAPSHOT} WHERE number = ?`, number);
      return row && readSnapshot(row);
    },
    async last() {
      const row = database().get(`${SNAPSHOT} ORDER BY number DESC LIMIT 1`);
      return row && readSnapshot(row);
    },
  };
}

function readSnapshot(row: Row): StoredSnapshot {
  return {
    number: Number(row.number),
    event: String(row.event),
    at: String(row.at),
    settings: JSON.parse(String(row.settings)) as unknown,
    origins: JSON.parse(String(row.origins)) as Record<string, StoredOrigin>,
  };
}
