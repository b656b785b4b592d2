import type { Migration } from '../index.ts';
import { sessions } from './0001-sessions.ts';

/** Of the file of sessions; see ../index.ts. */
export const sessionMigrations: readonly Migration[] = [{ number: 1, sql: sessions }];
