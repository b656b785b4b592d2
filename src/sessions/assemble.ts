import { join } from 'node:path';
import { eventMaker } from '../events/event-maker.ts';
import type { Exchange, Path, StatefulEndpoints } from '../gateway/contracts.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import { sessionsIn } from '../store/sqlite/sessions.ts';
import { Batches } from './batches/index.ts';
import { BatchRunner } from './batches/runner.ts';
import { Conversations } from './conversations/index.ts';
import { FileDisk } from './files/disk.ts';
import { Files } from './files/index.ts';
import { openFileStore } from './files/store/index.ts';
import { Responses } from './responses/index.ts';

export interface SessionsOptions {
  dataDir: string;
  /** Drawn anew by each process. */
  boot: string;
  clock: Clock;
  random: Random;
  timers: Timers;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** The endpoints of one kind of what is kept, and the work behind them. */
interface Part {
  take(path: Path, x: Exchange): void;
  start?(path: Path): void;
  drain?(): void;
  close?(): Promise<void>;
}

/** Puts together the endpoints whose meaning is stored state. */
export function assembleSessions(options: SessionsOptions): StatefulEndpoints {
  const { dataDir, clock, random, timers, boot } = options;
  const sessions = sessionsIn(dataDir);
  const turns = { store: sessions, clock, timers, boot, makeEvent: eventMaker(clock, random) };
  const store = openFileStore(join(dataDir, 'files.db'));
  const disk = new FileDisk(join(dataDir, 'files'));
  const runner = new BatchRunner({ ...options, store, disk, pid: process.pid });
  const parts: Partial<Record<NonNullable<Exchange['stateful']>['stateful'], Part>> = {
    responses: new Responses(turns),
    conversations: new Conversations(turns),
    files: new Files({ store, disk, clock }),
    batches: new Batches({ store, runner, clock, random }),
  };
  return {
    start(path) {
      for (const part of Object.values(parts)) part.start?.(path);
    },
    take(path, x) {
      parts[x.stateful!.stateful]!.take(path, x);
    },
    get batches() {
      return runner.open;
    },
    drain() {
      for (const part of Object.values(parts)) part.drain?.();
    },
    async close() {
      await Promise.all(Object.values(parts).map((part) => part.close?.()));
      await Promise.all([store.close(), sessions.close()]);
    },
  };
}
