import {
  DOCUMENT_CHARS_MAX,
  DOCUMENTS_MAX,
  type DocumentChange,
  type Documents,
  type StoredDocument,
  StoreError,
} from '../contracts.ts';
import type { Database, Row } from './database.ts';
import { insert } from './ledger.ts';

export function sqliteDocuments(database: () => Database): Documents {
  return {
    async get(kind, id) {
      const row = database().get('SELECT * FROM documents WHERE kind = ? AND id = ?', kind, id);
      return row && readDocument(row);
    },
    async list(kind, limit, after = '') {
      const rows = database().all(
        'SELECT * FROM documents WHERE kind = ? AND id > ? ORDER BY id LIMIT ?',
        kind,
        after,
        limit,
      );
      return rows.map(readDocument);
    },
    async change(changes, events) {
      const db = database();
      db.transaction(
        () => {
          for (const change of changes) apply(db, change);
          insert(db, events);
        },
        { durable: true },
      );
    },
  };
}

function apply(db: Database, { kind, id, body, on }: DocumentChange): void {
  const changed =
    body === undefined
      ? db.run('DELETE FROM documents WHERE kind = ? AND id = ? AND revision = ?', kind, id, on)
      : on === 0
        ? add(db, kind, id, write(body))
        : db.run(
            'UPDATE documents SET body = ?, revision = revision + 1 WHERE kind = ? AND id = ? AND revision = ?',
            write(body),
            kind,
            id,
            on,
          );
  if (changed === 0) throw new StoreError('conflict', `${kind} ${id} has changed since its revision ${on}`);
}

function add(db: Database, kind: string, id: string, text: string): number {
  const added = db.run(
    'INSERT INTO documents (kind, id, revision, body) VALUES (?, ?, 1, ?) ON CONFLICT (kind, id) DO NOTHING',
    kind,
    id,
    text,
  );
  const count = Number(db.get('SELECT count(*) AS count FROM documents WHERE kind = ?', kind)!.count);
  if (count > DOCUMENTS_MAX) throw new StoreError('conflict', `more than ${DOCUMENTS_MAX} of ${kind}`);
  return added;
}

function write(body: unknown): string {
  const text = JSON.stringify(body);
  if (text.length <= DOCUMENT_CHARS_MAX) return text;
  throw new StoreError('conflict', `a document has more than ${DOCUMENT_CHARS_MAX} characters`);
}

function readDocument(row: Row): StoredDocument {
  return {
    kind: String(row.kind),
    id: String(row.id),
    revision: Number(row.revision),
    body: JSON.parse(String(row.body)) as unknown,
  };
}
