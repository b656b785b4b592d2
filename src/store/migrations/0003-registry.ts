/** Versions of models, what they are made of, and the names that lead to them. */
export const registry = `
  -- The next number of a model only grows: a number that was given is never given again.
  CREATE TABLE registry_models (
    name        TEXT PRIMARY KEY,
    next_number INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE registry_artifacts (
    sha256     TEXT PRIMARY KEY,
    bytes      INTEGER NOT NULL,
    place      TEXT NOT NULL CHECK (place IN ('live', 'archive')),
    inspection TEXT NOT NULL,
    stored_ms  INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE registry_versions (
    model         TEXT NOT NULL REFERENCES registry_models (name),
    number        INTEGER NOT NULL,
    manifest      TEXT NOT NULL,
    digest        TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('live', 'archived')),
    parent_model  TEXT,
    parent_number INTEGER,
    sealed_at     TEXT NOT NULL,
    actor         TEXT NOT NULL,
    event         TEXT NOT NULL,
    PRIMARY KEY (model, number),
    FOREIGN KEY (parent_model, parent_number) REFERENCES registry_versions (model, number)
  ) STRICT;
  CREATE INDEX registry_versions_by_parent ON registry_versions (parent_model, parent_number);
  CREATE TRIGGER registry_versions_sealed
    BEFORE UPDATE OF model, number, manifest, digest, parent_model, parent_number, sealed_at, actor, event
    ON registry_versions BEGIN SELECT RAISE (ABORT, 'a sealed version does not change'); END;

  CREATE TABLE registry_files (
    model  TEXT NOT NULL,
    number INTEGER NOT NULL,
    path   TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES registry_artifacts (sha256),
    PRIMARY KEY (model, number, path),
    FOREIGN KEY (model, number) REFERENCES registry_versions (model, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX registry_files_by_sha256 ON registry_files (sha256);

  CREATE TABLE registry_aliases (
    model    TEXT NOT NULL,
    alias    TEXT NOT NULL,
    number   INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (model, alias),
    FOREIGN KEY (model, number) REFERENCES registry_versions (model, number)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX registry_aliases_by_number ON registry_aliases (model, number);

  -- Everything that an alias ever led to; without a number where it was taken away.
  CREATE TABLE registry_alias_moves (
    model    TEXT NOT NULL,
    alias    TEXT NOT NULL,
    revision INTEGER NOT NULL,
    number   INTEGER,
    at       TEXT NOT NULL,
    actor    TEXT NOT NULL,
    event    TEXT NOT NULL,
    PRIMARY KEY (model, alias, revision)
  ) STRICT, WITHOUT ROWID;
`;
