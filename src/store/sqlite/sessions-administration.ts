import type { SessionInFull, SessionSummary } from '../sessions.ts';
import type { Database, Row } from './database.ts';
import { giveBack, usedBytes } from './extent.ts';

interface PageOfAll {
  limit: number;
  after?: string;
  tenant?: string;
}

/** What operators do with sessions, and retention. */
export function sessionAdministration(database: Database) {
  return {
    list({ limit, after, tenant }: PageOfAll): SessionSummary[] | undefined {
      const from =
        after === undefined ? undefined : database.get('SELECT * FROM sessions WHERE id = ?', after);
      if (after !== undefined && !from) return undefined;
      const rows = database.all(
        `SELECT * FROM sessions WHERE (? IS NULL OR (updated_ms, id) < (?, ?)) AND (? IS NULL OR tenant = ?)
         ORDER BY updated_ms DESC, id DESC LIMIT ?`,
        from?.id ?? null,
        from?.updated_ms ?? null,
        from?.id ?? null,
        tenant ?? null,
        tenant ?? null,
        limit,
      );
      return rows.map(summaryOf);
    },
    show({ id }: { id: string }): SessionInFull | undefined {
      const row = database.get('SELECT * FROM sessions WHERE id = ?', id);
      if (!row) return undefined;
      const responses = database.all('SELECT * FROM responses WHERE session = ? ORDER BY rowid', id);
      const items = database.all('SELECT * FROM items WHERE session = ? ORDER BY position', id);
      return {
        ...summaryOf(row),
        metadata: String(row.metadata),
        responses: responses.map((each) => ({
          id: String(each.id),
          parent: each.parent === null ? null : String(each.parent),
          atMs: Number(each.at_ms),
          status: String(each.status),
          backend: String(each.backend),
          model: String(each.model),
          request: String(each.request),
          body: String(each.body),
        })),
        items: items.map((each) => ({
          id: String(each.id),
          response: each.response === null ? null : String(each.response),
          output: each.output === 1,
          listed: each.listed === 1,
          body: String(each.body),
        })),
      };
    },
    requestOf({ response }: { response: string }): string | undefined {
      const row = database.get('SELECT request FROM responses WHERE id = ?', response);
      return row && String(row.request);
    },
    remove({ id }: { id: string }): SessionSummary | undefined {
      return database.all('DELETE FROM sessions WHERE id = ? RETURNING *', id).map(summaryOf)[0];
    },
    sweep({ sinceMs, bytesMax, limit }: { sinceMs: number; bytesMax: number; limit: number }) {
      const removed = removeOldest(database, 'updated_ms < ?', sinceMs, limit);
      if (removed > 0 || usedBytes(database) <= bytesMax) {
        giveBack(database);
        return { removed, more: removed === limit };
      }
      // Of the tenant that has most: who keeps much pushes nobody else out.
      const most = database.get(
        'SELECT tenant FROM sessions GROUP BY tenant ORDER BY sum(size) DESC, tenant LIMIT 1',
      );
      if (!most) return { removed: 0, more: false };
      const beyond = removeOldest(database, 'tenant = ?', most.tenant!, limit);
      giveBack(database);
      return { removed: beyond, more: beyond > 0 && usedBytes(database) > bytesMax };
    },
  };
}

/** `which` has one place for `of`. Gives how many there were. */
function removeOldest(database: Database, which: string, of: string | number, limit: number): number {
  return database.run(
    `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE ${which} ORDER BY updated_ms, id LIMIT ?)`,
    of,
    limit,
  );
}

function summaryOf(row: Row): SessionSummary {
  return {
    id: String(row.id),
    tenant: String(row.tenant),
    conversation: row.conversation === 1,
    turns: Number(row.turns),
    createdMs: Number(row.created_ms),
    updatedMs: Number(row.updated_ms),
  };
}
