import { StoreError } from '../../src/store/contracts.ts';
import type { Database } from '../../src/store/sqlite/database.ts';
import type { ThreadModule } from '../../src/store/sqlite/threaded.ts';

/** A small file of words, for the tests of the thread that stores. */
const module = {
  migrations: [{ number: 1, sql: 'CREATE TABLE words (word TEXT PRIMARY KEY, of INTEGER NOT NULL) STRICT' }],
  reads: ['list'],
  operations: (database: Database) => ({
    /** The number of transactions so far is not told; rows with one `of` were put by one call. */
    put({ words, of = 0 }: { words: string[]; of?: number }): number {
      for (const word of words) database.run('INSERT INTO words VALUES (?, ?)', word, of);
      return words.length;
    },
    list(_: object): string[] {
      return database.all('SELECT word FROM words ORDER BY word').map(({ word }) => String(word));
    },
    refuse({ word }: { word: string }): void {
      database.run('INSERT INTO words VALUES (?, 0)', word);
      throw new StoreError('conflict', `not ${word}`);
    },
    limit({ pages }: { pages: number }): void {
      database.get(`PRAGMA max_page_count = ${pages}`);
    },
    die(_: object): void {
      process.nextTick(() => {
        throw new Error('the thread dies');
      });
    },
  }),
} satisfies ThreadModule;

export default module;
