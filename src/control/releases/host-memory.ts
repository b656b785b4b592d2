import { readFile } from 'node:fs/promises';
import type { Timers } from '../../kernel/timers.ts';

const EVERY_MS = 500;

/** Watches how much memory processes take together, as the kernel counts what is resident; Linux alone tells it so. */
export class MemoryWatch {
  readonly #pids: readonly number[];
  readonly #timers: Timers;
  #most: number | undefined;
  #over = false;

  constructor(pids: readonly number[], timers: Timers) {
    this.#pids = pids;
    this.#timers = timers;
    void this.#look();
  }

  /** Ends it: the most bytes that were seen; undefined where they cannot be read. */
  end(): number | undefined {
    this.#over = true;
    return this.#most;
  }

  async #look(): Promise<void> {
    const bytes = await Promise.all(this.#pids.map(residentBytes));
    if (this.#over) return;
    if (bytes.length > 0 && !bytes.includes(undefined))
      this.#most = Math.max(
        this.#most ?? 0,
        (bytes as number[]).reduce((sum, each) => sum + each, 0),
      );
    this.#timers.set(EVERY_MS, () => void this.#look());
  }
}

/** Undefined where the process is gone, or the system does not tell. */
async function residentBytes(pid: number): Promise<number | undefined> {
  try {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'));
    return match ? Number(match[1]) * 1024 : undefined;
  } catch {
    return undefined; // no such process, or no such file on this system
  }
}
