import { isAlive } from '../../kernel/alive.ts';
import { sessionMigrations } from '../migrations/sessions/index.ts';
import type {
  Answerer,
  Chain,
  ItemsPage,
  Line,
  NewConversation,
  NewItem,
  Owned,
  Page,
  StoredConversation,
  StoredResponse,
  Turn,
  Writer,
} from '../sessions.ts';
import type { Database, Row } from './database.ts';
import { sessionAdministration } from './sessions-administration.ts';
import type { ThreadModule } from './threaded.ts';

/** What is done with the file of sessions; ../sessions.ts says what each operation means. */

const RESPONSE = `SELECT responses.* FROM responses JOIN sessions ON sessions.id = session
  WHERE responses.id = ? AND tenant = ?`;
const CONVERSATION = 'SELECT * FROM sessions WHERE id = ? AND tenant = ? AND conversation = 1';

/** A response and all that it continues, by the number of steps back. */
const CHAIN = `WITH RECURSIVE chain (id, parent, session, back) AS (
    SELECT id, parent, session, 0 FROM responses WHERE id = ?
    UNION ALL
    SELECT responses.id, responses.parent, responses.session, back + 1 FROM chain JOIN responses ON responses.id = chain.parent
  )`;

function operations(database: Database) {
  return {
    ...responseOperations(database),
    ...lineOperations(database),
    ...conversationOperations(database),
    ...sessionAdministration(database),
  };
}

function responseOperations(database: Database) {
  return {
    response({ tenant, id }: Owned): StoredResponse | undefined {
      const row = database.get(RESPONSE, id, tenant);
      if (!row) return undefined;
      const output = database.all(
        'SELECT body FROM items WHERE response = ? AND output = 1 ORDER BY position',
        id,
      );
      return { body: String(row.body), output: output.map(bodyOf) };
    },
    inputItems({ tenant, id, ...page }: Owned & Page): ItemsPage | undefined {
      if (!database.get(RESPONSE, id, tenant)) return undefined;
      return pageOf(database, 'response = ? AND output = 0', id, page);
    },
    removeResponse({ tenant, id }: Owned): boolean {
      const row = database.get(RESPONSE, id, tenant);
      if (!row) return false;
      const session = String(row.session);
      database.run('DELETE FROM responses WHERE id = ?', id);
      if (row.status !== 'failed')
        database.run('UPDATE sessions SET turns = turns - 1 WHERE id = ?', session);
      measure(database, session);
      // A tree is there for as long as a response of it is.
      database.run(
        `DELETE FROM sessions WHERE id = ? AND conversation = 0
           AND NOT EXISTS (SELECT 1 FROM responses WHERE session = sessions.id)`,
        session,
      );
      return true;
    },
    chain({ tenant, id, bytesMax }: Owned & { bytesMax: number }): Chain | undefined {
      const row = database.get(RESPONSE, id, tenant);
      if (!row) return undefined;
      const last = { backend: String(row.backend), model: String(row.model) };
      const root = database.get(
        `${CHAIN} SELECT chain.id, chain.parent, chain.session, conversation
         FROM chain JOIN sessions ON sessions.id = chain.session ORDER BY back DESC LIMIT 1`,
        id,
      )!;
      const own = database.get('SELECT conversation FROM sessions WHERE id = ?', String(row.session))!;
      // Whoever goes on from a turn of a conversation begins a tree of its own.
      const session = own.conversation === 1 ? undefined : String(row.session);
      const trouble = row.status === 'failed' ? 'failed' : root.parent === null ? undefined : 'broken';
      if (trouble) return { trouble, session, bodies: [], last };
      const before = root.conversation === 1 ? turnsBefore(database, root) : [];
      const after = database.all(
        `${CHAIN} SELECT body FROM chain JOIN items ON response = chain.id ORDER BY back DESC, position`,
        id,
      );
      const bodies = [...before, ...after].map(bodyOf);
      return isTooLong(bodies, bytesMax)
        ? { trouble: 'too-long', session, bodies: [], last }
        : { session, bodies, last };
    },
    itemsById({ tenant, ids }: { tenant: string; ids: string[] }): { id: string; body: string }[] {
      return ids.flatMap((id) => {
        const row = database.get(
          'SELECT body FROM items JOIN sessions ON sessions.id = session WHERE items.id = ? AND tenant = ?',
          id,
          tenant,
        );
        return row ? [{ id, body: bodyOf(row) }] : [];
      });
    },
    keep(turn: Turn): 'kept' | 'lost' {
      return keep(database, turn);
    },
  };
}

/** The turns of a conversation that come before one of its responses. */
function turnsBefore(database: Database, { id, session }: Row): Row[] {
  return database.all(
    `SELECT body FROM items WHERE session = ? AND listed = 1
       AND position < (SELECT min(position) FROM items WHERE response = ?) ORDER BY position`,
    session!,
    id!,
  );
}

function keep(database: Database, turn: Turn): 'kept' | 'lost' {
  const { tenant, id, session, conversation, parent, owner, nowMs, status, answerer } = turn;
  const isTurn = status !== 'failed';
  const row = database.get('SELECT * FROM sessions WHERE id = ? AND tenant = ?', session, tenant);
  if (conversation) {
    if (!row || row.owner !== owner) return 'lost';
  } else {
    if (parent !== undefined && !database.get(RESPONSE, parent, tenant)) return 'lost';
    if (!row) {
      // A tree is called after its first response.
      if (session !== id) return 'lost';
      database.run(
        `INSERT INTO sessions (id, tenant, conversation, metadata, created_ms, updated_ms) VALUES (?, ?, 0, '{}', ?, ?)`,
        session,
        tenant,
        turn.atMs,
        nowMs,
      );
    }
  }
  database.run(
    `UPDATE sessions SET turns = turns + ?, updated_ms = max(updated_ms, ?),
       owner = NULL, owner_pid = NULL, owned_until_ms = NULL WHERE id = ?`,
    isTurn ? 1 : 0,
    nowMs,
    session,
  );
  database.run(
    `INSERT INTO responses (id, session, parent, at_ms, status, backend, model, request, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    id,
    session,
    parent ?? null,
    turn.atMs,
    status,
    answerer.backend,
    answerer.model,
    turn.request,
    turn.body,
  );
  const place = { session, response: id, listed: conversation && isTurn };
  insertItems(database, turn.input, { ...place, output: false });
  insertItems(database, turn.output, { ...place, output: true });
  grow(database, session, [turn, ...turn.input, ...turn.output]);
  return 'kept';
}

/** Notes that so much was added. */
function grow(database: Database, session: string, added: readonly { body: string }[]): void {
  const size = added.reduce((sum, { body }) => sum + body.length, 0);
  database.run('UPDATE sessions SET size = size + ? WHERE id = ?', size, session);
}

/** Notes how much there is, after something was removed. */
function measure(database: Database, session: string): void {
  database.run(
    `UPDATE sessions SET size =
       (SELECT coalesce(sum(length(body)), 0) FROM items WHERE session = sessions.id)
       + (SELECT coalesce(sum(length(body)), 0) FROM responses WHERE session = sessions.id)
     WHERE id = ?`,
    session,
  );
}

function lineOperations(database: Database) {
  return {
    takeLine({ tenant, id, bytesMax, ...writer }: Owned & Writer & { bytesMax: number }): Line | undefined {
      const row = database.get(CONVERSATION, id, tenant);
      if (!row) return undefined;
      if (isHeld(row, writer)) return { trouble: 'held', bodies: [], last: undefined };
      const bodies = database
        .all('SELECT body FROM items WHERE session = ? AND listed = 1 ORDER BY position', id)
        .map(bodyOf);
      if (isTooLong(bodies, bytesMax)) return { trouble: 'too-long', bodies: [], last: undefined };
      hold(database, id, writer);
      const answered = database.get(
        "SELECT backend, model FROM responses WHERE session = ? AND status <> 'failed' ORDER BY rowid DESC LIMIT 1",
        id,
      );
      const last: Answerer | undefined = answered && {
        backend: String(answered.backend),
        model: String(answered.model),
      };
      return { bodies, last };
    },
    renewLine({ id, ...writer }: { id: string } & Writer): boolean {
      return (
        database.run(
          'UPDATE sessions SET owned_until_ms = ? WHERE id = ? AND owner = ?',
          writer.untilMs,
          id,
          writer.owner,
        ) > 0
      );
    },
    releaseLine({ id, owner }: { id: string; owner: string }): void {
      database.run(
        'UPDATE sessions SET owner = NULL, owner_pid = NULL, owned_until_ms = NULL WHERE id = ? AND owner = ?',
        id,
        owner,
      );
    },
  };
}

function conversationOperations(database: Database) {
  return {
    createConversation({ tenant, id, nowMs, metadata, items }: NewConversation): void {
      database.run(
        'INSERT INTO sessions (id, tenant, conversation, metadata, created_ms, updated_ms) VALUES (?, ?, 1, ?, ?, ?)',
        id,
        tenant,
        metadata,
        nowMs,
        nowMs,
      );
      insertItems(database, items, PUT_BY_TENANT(id));
      grow(database, id, items);
    },
    conversation({ tenant, id }: Owned): StoredConversation | undefined {
      const row = database.get(CONVERSATION, id, tenant);
      return row && readConversation(row);
    },
    setMetadata({ tenant, id, metadata }: Owned & { metadata: string }): StoredConversation | undefined {
      const row = database.get(CONVERSATION, id, tenant);
      if (!row) return undefined;
      database.run('UPDATE sessions SET metadata = ? WHERE id = ?', metadata, id);
      return { ...readConversation(row), metadata };
    },
    removeConversation({ tenant, id, ...writer }: Owned & Writer): 'removed' | 'held' | undefined {
      const row = database.get(CONVERSATION, id, tenant);
      if (!row) return undefined;
      if (isHeld(row, writer)) return 'held';
      database.run('DELETE FROM sessions WHERE id = ?', id);
      return 'removed';
    },
    items({ tenant, id, ...page }: Owned & Page): ItemsPage | undefined {
      if (!database.get(CONVERSATION, id, tenant)) return undefined;
      return pageOf(database, 'session = ? AND listed = 1', id, page);
    },
    addItems({
      tenant,
      id,
      items,
      itemsMax,
      ...writer
    }: Owned & Writer & { items: NewItem[]; itemsMax: number }) {
      const row = database.get(CONVERSATION, id, tenant);
      if (!row) return undefined;
      if (isHeld(row, writer)) return 'held' as const;
      const { count } = database.get('SELECT count(*) AS count FROM items WHERE session = ?', id)!;
      if (Number(count) + items.length > itemsMax) return 'full' as const;
      insertItems(database, items, PUT_BY_TENANT(id));
      grow(database, id, items);
      database.run('UPDATE sessions SET updated_ms = max(updated_ms, ?) WHERE id = ?', writer.nowMs, id);
      return 'added' as const;
    },
    item({ tenant, id, item }: Owned & { item: string }): string | undefined {
      const row = database.get(CONVERSATION, id, tenant) && listedItem(database, id, item);
      return row && bodyOf(row);
    },
    removeItem({ tenant, id, item, ...writer }: Owned & Writer & { item: string }) {
      const row = database.get(CONVERSATION, id, tenant);
      if (!row || !listedItem(database, id, item)) return undefined;
      if (isHeld(row, writer)) return 'held' as const;
      // What a response consists of stays with it.
      database.run('DELETE FROM items WHERE id = ? AND response IS NULL', item);
      database.run('UPDATE items SET listed = 0 WHERE id = ?', item);
      measure(database, id);
      database.run('UPDATE sessions SET updated_ms = max(updated_ms, ?) WHERE id = ?', writer.nowMs, id);
      return 'removed' as const;
    },
  };
}

const PUT_BY_TENANT = (session: string): Place => ({ session, response: null, output: false, listed: true });

interface Place {
  session: string;
  response: string | null;
  output: boolean;
  listed: boolean;
}

function insertItems(database: Database, items: readonly NewItem[], place: Place): void {
  for (const { id, body } of items) {
    database.run(
      'INSERT INTO items (id, session, response, output, listed, body) VALUES (?, ?, ?, ?, ?, ?)',
      id,
      place.session,
      place.response,
      Number(place.output),
      Number(place.listed),
      body,
    );
  }
}

function listedItem(database: Database, session: string, item: string): Row | undefined {
  return database.get('SELECT body FROM items WHERE id = ? AND session = ? AND listed = 1', item, session);
}

/** Items of a list, one more than asked for to see whether there are more. `where` has one place for `of`. */
function pageOf(database: Database, where: string, of: string, { order, after, limit }: Page): ItemsPage {
  const from =
    after === undefined
      ? undefined
      : database.get(`SELECT position FROM items WHERE ${where} AND id = ?`, of, after);
  if (after !== undefined && !from) return { bodies: [], more: false, afterUnknown: true };
  const [compare, direction] = order === 'asc' ? ['>', 'ASC'] : ['<', 'DESC'];
  const beyond = from ? `AND position ${compare} ${Number(from.position)}` : '';
  const rows = database.all(
    `SELECT body FROM items WHERE ${where} ${beyond} ORDER BY position ${direction} LIMIT ?`,
    of,
    limit + 1,
  );
  return { bodies: rows.slice(0, limit).map(bodyOf), more: rows.length > limit };
}

function hold(database: Database, id: string, { owner, pid, untilMs }: Writer): void {
  database.run(
    'UPDATE sessions SET owner = ?, owner_pid = ?, owned_until_ms = ? WHERE id = ?',
    owner,
    pid,
    untilMs,
    id,
  );
}

/** Whether another writes it now: one whose time is not over, and whose process still runs. */
function isHeld(row: Row, { owner, pid, nowMs }: Writer): boolean {
  if (row.owner === null || row.owner === owner || Number(row.owned_until_ms) <= nowMs) return false;
  const boot = (name: string) => name.slice(0, name.indexOf('/'));
  // A process that has this one's number and another boot was here before it.
  if (Number(row.owner_pid) === pid) return boot(String(row.owner)) === boot(owner);
  return isAlive(Number(row.owner_pid));
}

function isTooLong(bodies: readonly string[], bytesMax: number): boolean {
  let bytes = 0;
  for (const body of bodies) bytes += body.length;
  return bytes > bytesMax;
}

function readConversation(row: Row): StoredConversation {
  return { id: String(row.id), createdMs: Number(row.created_ms), metadata: String(row.metadata) };
}

const bodyOf = ({ body }: Row): string => String(body);

const module = {
  migrations: sessionMigrations,
  reads: [
    ...['response', 'inputItems', 'chain', 'itemsById', 'conversation', 'items', 'item'],
    ...['list', 'show', 'requestOf'],
  ],
  operations,
} satisfies ThreadModule;

export default module;
