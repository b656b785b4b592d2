import { ledger } from './0001-ledger.ts';
import { documents } from './0002-documents.ts';
import { registry } from './0003-registry.ts';
import { registryLinks } from './0004-registry-links.ts';
import { documentsByKind } from './0005-documents-by-kind.ts';

export interface Migration {
  number: number;
  sql: string;
}

/** In order. A migration that was released is never changed; a change of the tables is a further one. */
export const migrations: readonly Migration[] = [
  { number: 1, sql: ledger },
  { number: 2, sql: documents },
  { number: 3, sql: registry },
  { number: 4, sql: registryLinks },
  { number: 5, sql: documentsByKind },
];
