/** Events and what they are found by; the batches that are stored; keys, overlays and snapshots. */
export const ledger = `
  CREATE TABLE events (
    position   INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    at_ms      INTEGER NOT NULL,
    type       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    actor      TEXT NOT NULL,
    causes     TEXT NOT NULL,
    data       TEXT NOT NULL,
    request_id TEXT,
    second     INTEGER,
    snapshot   INTEGER
  ) STRICT;
  CREATE INDEX events_by_time ON events (at_ms);
  CREATE INDEX events_by_type ON events (type, position);
  CREATE INDEX events_by_subject ON events (subject, position);
  CREATE INDEX events_by_request_id ON events (request_id, position) WHERE request_id IS NOT NULL;
  CREATE INDEX events_by_second ON events (second, position) WHERE second IS NOT NULL;
  CREATE INDEX events_by_snapshot ON events (snapshot) WHERE snapshot IS NOT NULL;

  -- Numbers of stored batches, as ranges: a worker whose batches come in order has one row.
  CREATE TABLE batches (
    boot      TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    stored_ms INTEGER NOT NULL,
    PRIMARY KEY (boot, first)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE keys (
    id         TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    revoked_at TEXT
  ) STRICT;

  CREATE TABLE overlays (
    path  TEXT PRIMARY KEY,
    body  TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Settings and their origins, kept once for all the snapshots that have the same.
  CREATE TABLE settings (
    id       INTEGER PRIMARY KEY,
    hash     TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL,
    origins  TEXT NOT NULL
  ) STRICT;

  CREATE TABLE snapshots (
    number   INTEGER PRIMARY KEY,
    event    TEXT NOT NULL,
    at       TEXT NOT NULL,
    settings INTEGER NOT NULL REFERENCES settings (id)
  ) STRICT;
  CREATE INDEX snapshots_by_settings ON snapshots (settings);
`;
