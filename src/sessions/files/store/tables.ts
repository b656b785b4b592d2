import type { Migration } from '../../../store/migrations/index.ts';

/** Files, batches over them, which worker runs which, and the results of lines until they are in a file. Times: milliseconds. */
const first = `
  CREATE TABLE files (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    purpose    TEXT NOT NULL,
    filename   TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER
  ) STRICT;
  CREATE INDEX files_by_tenant ON files (tenant, seq);
  CREATE INDEX files_by_expiry ON files (expires_ms) WHERE expires_ms IS NOT NULL;

  CREATE TABLE batches (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT NOT NULL UNIQUE,
    tenant           TEXT NOT NULL,
    endpoint         TEXT NOT NULL,
    input_file       TEXT NOT NULL,
    completion_window TEXT NOT NULL,
    metadata         TEXT,
    -- Milliseconds that its output files are kept; null: until they are deleted.
    output_kept_ms   INTEGER,
    status           TEXT NOT NULL,
    errors           TEXT,
    total            INTEGER NOT NULL DEFAULT 0,
    completed        INTEGER NOT NULL DEFAULT 0,
    failed           INTEGER NOT NULL DEFAULT 0,
    output_file      TEXT,
    error_file       TEXT,
    created_ms       INTEGER NOT NULL,
    expires_ms       INTEGER NOT NULL,
    in_progress_ms   INTEGER,
    finalizing_ms    INTEGER,
    completed_ms     INTEGER,
    failed_ms        INTEGER,
    expired_ms       INTEGER,
    cancelling_ms    INTEGER,
    cancelled_ms     INTEGER,
    -- The process that runs it now, by its boot; each claim has the next epoch, and who has an older one writes nothing.
    owner            TEXT,
    epoch            INTEGER NOT NULL DEFAULT 0,
    -- 1 while rows of its results may be left.
    has_results      INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX batches_by_tenant ON batches (tenant, seq);
  CREATE INDEX batches_by_input ON batches (input_file);
  CREATE INDEX batches_open ON batches (status)
    WHERE status IN ('validating', 'in_progress', 'finalizing', 'cancelling');
  CREATE INDEX batches_with_results ON batches (seq) WHERE has_results = 1;

  -- What became of a line, as it will stand in the output file (0) or the error file (1).
  CREATE TABLE results (
    batch  INTEGER NOT NULL,
    line   INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    text   TEXT NOT NULL,
    PRIMARY KEY (batch, line)
  ) STRICT;

  -- Workers that run batches: a beat that stands still is that of a process that does.
  CREATE TABLE workers (
    boot TEXT PRIMARY KEY,
    pid  INTEGER NOT NULL,
    beat INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

export const migrations: readonly Migration[] = [{ number: 1, sql: first }];
