import { join } from 'node:path';
import type { Exchange, Path, StatefulEndpoints } from '../gateway/contracts.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import { FileDisk } from './files/disk.ts';
import { Files } from './files/index.ts';
import { openFileStore } from './files/store/index.ts';

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
  const { dataDir, clock } = options;
  const store = openFileStore(join(dataDir, 'files.db'));
  const disk = new FileDisk(join(dataDir, 'files'));
  const parts: Partial<Record<NonNullable<Exchange['stateful']>['stateful'], Part>> = {
    files: new Files({ store, disk, clock }),
  };
  return {
    start(path) {
      for (const part of Object.values(parts)) part.start?.(path);
    },
    take(path, x) {
      parts[x.stateful!.stateful]!.take(path, x);
    },
    drain() {
      for (const part of Object.values(parts)) part.drain?.();
    },
    async close() {
      await Promise.all(Object.values(parts).map((part) => part.close?.()));
      await store.close();
    },
  };
}
