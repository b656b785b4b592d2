import { DatabaseSync } from 'node:sqlite';
import { pause, type Timers } from '../../kernel/timers.ts';

const AGAIN_MS = 200;
/** SQLite's own code for a file that somebody else holds. */
const BUSY = 5;

/**
 * Waits until nobody else on this machine holds `path`, and holds it until `release`. An empty SQLite database serves as
 * the lock: the kernel gives it back when its holder dies, however that happens. `onWait` is called once if it must wait.
 */
export async function takeLock(
  path: string,
  timers: Timers,
  onWait: () => void,
): Promise<{ release(): void }> {
  let told = false;
  for (;;) {
    const database = new DatabaseSync(path);
    try {
      database.exec('BEGIN EXCLUSIVE');
      return { release: () => database.close() };
    } catch (error) {
      database.close();
      if ((error as { errcode?: number }).errcode !== BUSY) throw error;
    }
    if (!told) onWait();
    told = true;
    await pause(timers, AGAIN_MS);
  }
}
