/** What leads to versions, besides their names, and what is still to be tidied up after them. */
export const registryLinks = `
  -- Whoever asks again for what was added by a key is given what it was given before.
  CREATE TABLE registry_additions (
    model  TEXT NOT NULL,
    key    TEXT NOT NULL,
    asked  TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (model, key),
    FOREIGN KEY (model, number) REFERENCES registry_versions (model, number) ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX registry_additions_by_number ON registry_additions (model, number);

  -- The decisions that manifests name.
  CREATE TABLE registry_decisions (
    decision TEXT NOT NULL,
    model    TEXT NOT NULL,
    number   INTEGER NOT NULL,
    PRIMARY KEY (decision, model, number),
    FOREIGN KEY (model, number) REFERENCES registry_versions (model, number) ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX registry_decisions_by_number ON registry_decisions (model, number);
  INSERT OR IGNORE INTO registry_decisions (decision, model, number)
    SELECT value, model, number FROM registry_versions, json_each(manifest, '$.decisions');

  -- Content of which a copy may lie where nothing names it: written before it can, gone when it was looked at.
  CREATE TABLE registry_leftovers (
    sha256 TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
`;
