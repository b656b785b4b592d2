import { ledger } from './0001-ledger.ts';

/** In order. A migration that was released is never changed; a change of the tables is a further one. */
export const migrations: readonly { number: number; sql: string }[] = [{ number: 1, sql: ledger }];
