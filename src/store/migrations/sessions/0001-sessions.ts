/** Conversations and trees of responses, their turns, and the items that turns consist of. */
export const sessions = `
  CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    tenant       TEXT NOT NULL,
    -- 1: made by its tenant, one line of turns; 0: the tree of the response that it is called after.
    conversation INTEGER NOT NULL,
    metadata     TEXT NOT NULL,
    created_ms   INTEGER NOT NULL,
    updated_ms   INTEGER NOT NULL,
    turns        INTEGER NOT NULL DEFAULT 0,
    -- Characters of its bodies.
    size         INTEGER NOT NULL DEFAULT 0,
    -- Who writes a line now.
    owner        TEXT,
    owner_pid    INTEGER,
    owned_until_ms INTEGER
  ) STRICT;
  CREATE INDEX sessions_by_update ON sessions (updated_ms, id);

  CREATE TABLE responses (
    id       TEXT PRIMARY KEY,
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    parent   TEXT,
    at_ms    INTEGER NOT NULL,
    status   TEXT NOT NULL,
    -- What answered: empty where no engine did.
    backend  TEXT NOT NULL,
    model    TEXT NOT NULL,
    request  TEXT NOT NULL,
    -- The object without its output.
    body     TEXT NOT NULL
  ) STRICT;
  CREATE INDEX responses_by_session ON responses (session, at_ms);

  CREATE TABLE items (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    session  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    response TEXT REFERENCES responses (id) ON DELETE CASCADE,
    -- 1: answered; 0: asked, or put there by its tenant.
    output   INTEGER NOT NULL,
    -- Whether it is a part of its conversation.
    listed   INTEGER NOT NULL,
    body     TEXT NOT NULL
  ) STRICT;
  CREATE INDEX items_by_response ON items (response, position) WHERE response IS NOT NULL;
  CREATE INDEX items_by_session ON items (session, position);
`;
