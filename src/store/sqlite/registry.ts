import type { LedgerEvent } from '../../events/contracts.ts';
import { StoreError } from '../contracts.ts';
import {
  ALIASES_MAX,
  type AliasMove,
  addedByKey,
  FILES_MAX,
  MANIFEST_CHARS_MAX,
  MODELS_MAX,
  MOVES_MAX,
  type NewVersion,
  type RegistryStore,
  type StateChange,
  type StoredAliasMove,
  type StoredModel,
  type StoredVersion,
  VERSIONS_MAX,
} from '../registry.ts';
import type { Database, Row } from './database.ts';
import { insert } from './ledger.ts';
import { contentIn, forgetUnused, leftoversIn } from './registry-content.ts';

const DURABLE = { durable: true };
const refused = (message: string) => new StoreError('conflict', message);

export function sqliteRegistry(database: () => Database): RegistryStore {
  return {
    ...versionsIn(database),
    ...aliasesIn(database),
    ...contentIn(database),
    ...leftoversIn(database),
  };
}

const MODEL = `SELECT name,
  (SELECT count(*) FROM registry_versions WHERE model = name) AS versions,
  (SELECT max(number) FROM registry_versions WHERE model = name) AS newest,
  (SELECT count(*) FROM registry_aliases WHERE model = name) AS aliases
  FROM registry_models`;

function versionsIn(
  database: () => Database,
): Pick<
  RegistryStore,
  'addVersion' | 'version' | 'versions' | 'namedBy' | 'models' | 'model' | 'removeVersion' | 'changeState'
> {
  return {
    async addVersion(version, told) {
      const db = database();
      return db.transaction(() => {
        const before = addedBefore(db, version);
        if (before) return before;
        const number = nextNumber(db, version.model);
        const event = told(number);
        addVersion(db, version, number, event);
        insert(db, [event]);
        return find(db, version.model, number)!;
      }, DURABLE);
    },
    async version(model, number) {
      const db = database();
      return db.reading(() => find(db, model, number));
    },
    async versions(model, limit, before = Number.MAX_SAFE_INTEGER) {
      const db = database();
      return db.reading(() =>
        db
          .all(
            'SELECT * FROM registry_versions WHERE model = ? AND number < ? ORDER BY number DESC LIMIT ?',
            model,
            before,
            limit,
          )
          .map((row) => readVersion(db, row)),
      );
    },
    namedBy: async (decision, limit) => namedBy(database(), decision, limit),
    async models(limit, after = '') {
      return database().all(`${MODEL} WHERE name > ? ORDER BY name LIMIT ?`, after, limit).map(readModel);
    },
    async model(name) {
      const row = database().get(`${MODEL} WHERE name = ?`, name);
      return row && readModel(row);
    },
    async removeVersion(model, number, event) {
      const db = database();
      return db.transaction(() => {
        const version = find(db, model, number);
        if (!version) return undefined;
        refuseUsed(db, model, number);
        db.run('DELETE FROM registry_files WHERE model = ? AND number = ?', model, number);
        db.run('DELETE FROM registry_versions WHERE model = ? AND number = ?', model, number);
        insert(db, [event]);
        return version.files.flatMap(({ sha256 }) => forgetUnused(db, sha256));
      }, DURABLE);
    },
    async changeState(change, event) {
      const db = database();
      db.transaction(() => {
        changeState(db, change);
        insert(db, [event]);
      }, DURABLE);
    },
  };
}

/** What was added by the same key. */
function addedBefore(db: Database, { model, once }: NewVersion): StoredVersion | undefined {
  const row =
    once &&
    db.get('SELECT number, asked FROM registry_additions WHERE model = ? AND key = ?', model, once.key);
  if (!row) return undefined;
  const number = Number(row.number);
  if (row.asked !== once.asked) throw refused(addedByKey(model, number, once.key));
  return find(db, model, number);
}

function nextNumber(db: Database, model: string): number {
  db.run('INSERT INTO registry_models (name, next_number) VALUES (?, 1) ON CONFLICT DO NOTHING', model);
  const count = Number(db.get('SELECT count(*) AS count FROM registry_models')!.count);
  if (count > MODELS_MAX) throw refused(`there are ${MODELS_MAX} models already`);
  const number = Number(db.get('SELECT next_number FROM registry_models WHERE name = ?', model)!.next_number);
  if (number > VERSIONS_MAX) throw refused(`${model} has had ${VERSIONS_MAX} versions already`);
  db.run('UPDATE registry_models SET next_number = next_number + 1 WHERE name = ?', model);
  return number;
}

function addVersion(db: Database, version: NewVersion, number: number, event: LedgerEvent): void {
  const { model, files, parent, digest, decisions = [], once } = version;
  const manifest = JSON.stringify(version.manifest);
  if (manifest.length > MANIFEST_CHARS_MAX)
    throw refused(`a manifest has ${MANIFEST_CHARS_MAX} characters at most`);
  if (files.length > FILES_MAX) throw refused(`a version has ${FILES_MAX} files at most`);
  if (parent && !find(db, parent.model, parent.number))
    throw refused(`its parent ${parent.model}@${parent.number} is not there`);
  const { at, actor, id } = event;
  db.run(
    `INSERT INTO registry_versions (model, number, manifest, digest, state, parent_model, parent_number, sealed_at, actor, event)
     VALUES (?, ?, ?, ?, 'live', ?, ?, ?, ?, ?)`,
    model,
    number,
    manifest,
    digest,
    parent?.model ?? null,
    parent?.number ?? null,
    at,
    actor,
    id,
  );
  for (const { path, sha256 } of files) {
    const content = db.get('SELECT place FROM registry_artifacts WHERE sha256 = ?', sha256);
    if (!content) throw refused(`the content of ${path} is not there`);
    if (content.place !== 'live')
      throw refused(`the content of ${path} is archived: restore a version that has it, or upload it again`);
    db.run(
      'INSERT INTO registry_files (model, number, path, sha256) VALUES (?, ?, ?, ?)',
      model,
      number,
      path,
      sha256,
    );
  }
  for (const decision of new Set(decisions))
    db.run(
      'INSERT INTO registry_decisions (decision, model, number) VALUES (?, ?, ?)',
      decision,
      model,
      number,
    );
  if (once)
    db.run(
      'INSERT INTO registry_additions (model, key, asked, number) VALUES (?, ?, ?, ?)',
      model,
      once.key,
      once.asked,
      number,
    );
}

function refuseUsed(db: Database, model: string, number: number): void {
  const alias = db.get('SELECT alias FROM registry_aliases WHERE model = ? AND number = ?', model, number);
  if (alias) throw refused(`the alias ${model}@${alias.alias} leads to it`);
  const child = db.get(
    'SELECT model, number FROM registry_versions WHERE parent_model = ? AND parent_number = ?',
    model,
    number,
  );
  if (child) throw refused(`${child.model}@${child.number} descends from it`);
}

function changeState(db: Database, { model, number, from, to, moved, place }: StateChange): void {
  if (to === 'archived') {
    const alias = db.get('SELECT alias FROM registry_aliases WHERE model = ? AND number = ?', model, number);
    if (alias) throw refused(`the alias ${model}@${alias.alias} leads to it`);
  }
  const changed = db.run(
    'UPDATE registry_versions SET state = ? WHERE model = ? AND number = ? AND state = ?',
    to,
    model,
    number,
    from,
  );
  if (changed === 0) throw refused(`${model}@${number} is not ${from}`);
  for (const sha256 of moved) {
    db.run(
      `UPDATE registry_artifacts SET place = ?1 WHERE sha256 = ?2 AND (?1 = 'live' OR sha256 NOT IN (
         SELECT sha256 FROM registry_files JOIN registry_versions USING (model, number) WHERE state = 'live'))`,
      place,
      sha256,
    );
  }
}

function find(db: Database, model: string, number: number): StoredVersion | undefined {
  const row = db.get('SELECT * FROM registry_versions WHERE model = ? AND number = ?', model, number);
  return row && readVersion(db, row);
}

function namedBy(db: Database, decision: string, limit: number) {
  const rows = db.all(
    `SELECT model, number, event FROM registry_decisions JOIN registry_versions USING (model, number)
     WHERE decision = ? ORDER BY sealed_at DESC, event DESC LIMIT ?`,
    decision,
    limit,
  );
  return rows.map(({ model, number, event }) => {
    return { model: String(model), number: Number(number), event: String(event) };
  });
}

function readVersion(db: Database, row: Row): StoredVersion {
  const [model, number] = [String(row.model), Number(row.number)];
  const files = db.all(
    `SELECT path, sha256, bytes FROM registry_files JOIN registry_artifacts USING (sha256)
     WHERE model = ? AND number = ? ORDER BY path`,
    model,
    number,
  );
  return {
    model,
    number,
    manifest: JSON.parse(String(row.manifest)) as unknown,
    digest: String(row.digest),
    files: files.map((file) => ({
      path: String(file.path),
      sha256: String(file.sha256),
      bytes: Number(file.bytes),
    })),
    state: row.state as StoredVersion['state'],
    ...(row.parent_model !== null && {
      parent: { model: String(row.parent_model), number: Number(row.parent_number) },
    }),
    sealedAt: String(row.sealed_at),
    actor: String(row.actor),
    event: String(row.event),
  };
}

function readModel({ name, versions, newest, aliases }: Row): StoredModel {
  return {
    name: String(name),
    versions: Number(versions),
    newest: newest == null ? undefined : Number(newest),
    aliases: Number(aliases),
  };
}

const ALIAS = `SELECT model, alias, registry_aliases.number AS number, revision, at, actor, event
  FROM registry_aliases JOIN registry_alias_moves USING (model, alias, revision)`;

function aliasesIn(
  database: () => Database,
): Pick<RegistryStore, 'moveAlias' | 'alias' | 'aliases' | 'aliasMoves'> {
  const current = (db: Database, model: string, alias: string) => {
    const row = db.get(`${ALIAS} WHERE model = ? AND alias = ?`, model, alias);
    return row && { ...readMove(row), number: Number(row.number) };
  };
  return {
    async moveAlias(move, event) {
      const db = database();
      const { model, alias, to } = move;
      return db.transaction(() => {
        const before = current(db, model, alias);
        if (before?.number === to && !(move.expect !== undefined && move.expect !== (to ?? null)))
          return before;
        moveAlias(db, move, before?.number, event);
        insert(db, [event]);
        return current(db, model, alias);
      }, DURABLE);
    },
    async alias(model, alias) {
      return current(database(), model, alias);
    },
    async aliases(model) {
      return database()
        .all(`${ALIAS} WHERE model = ? ORDER BY alias`, model)
        .map((row) => ({ ...readMove(row), number: Number(row.number) }));
    },
    async aliasMoves(model, alias, limit, before = Number.MAX_SAFE_INTEGER) {
      return database()
        .all(
          'SELECT * FROM registry_alias_moves WHERE model = ? AND alias = ? AND revision < ? ORDER BY revision DESC LIMIT ?',
          model,
          alias,
          before,
          limit,
        )
        .map(readMove);
    },
  };
}

function moveAlias(
  db: Database,
  { model, alias, to, expect }: AliasMove,
  before: number | undefined,
  { at, actor, id }: LedgerEvent,
): void {
  if (expect !== undefined && expect !== (before ?? null)) {
    const leads = before === undefined ? 'is not there' : `leads to version ${before}`;
    throw refused(`${model}@${alias} ${leads}, where ${expect === null ? 'none' : expect} was expected`);
  }
  const newest = db.get(
    'SELECT max(revision) AS revision FROM registry_alias_moves WHERE model = ? AND alias = ?',
    model,
    alias,
  );
  const revision = Number(newest?.revision ?? 0) + 1;
  if (revision > MOVES_MAX) throw refused(`${model}@${alias} was moved ${MOVES_MAX} times already`);
  if (to === undefined) {
    db.run('DELETE FROM registry_aliases WHERE model = ? AND alias = ?', model, alias);
  } else {
    const version = find(db, model, to);
    if (version?.state !== 'live') throw refused(`${model}@${to} is ${version ? 'archived' : 'not there'}`);
    db.run(
      `INSERT INTO registry_aliases (model, alias, number, revision) VALUES (?, ?, ?, ?)
       ON CONFLICT (model, alias) DO UPDATE SET number = excluded.number, revision = excluded.revision`,
      model,
      alias,
      to,
      revision,
    );
    const count = Number(
      db.get('SELECT count(*) AS count FROM registry_aliases WHERE model = ?', model)!.count,
    );
    if (count > ALIASES_MAX) throw refused(`${model} has ${ALIASES_MAX} aliases already`);
  }
  db.run(
    'INSERT INTO registry_alias_moves (model, alias, revision, number, at, actor, event) VALUES (?, ?, ?, ?, ?, ?, ?)',
    model,
    alias,
    revision,
    to ?? null,
    at,
    actor,
    id,
  );
}

function readMove(row: Row): StoredAliasMove {
  return {
    model: String(row.model),
    alias: String(row.alias),
    number: row.number == null ? undefined : Number(row.number),
    revision: Number(row.revision),
    at: String(row.at),
    actor: String(row.actor),
    event: String(row.event),
  };
}
