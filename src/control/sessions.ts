import { existsSync } from 'node:fs';
import type { Surface } from '../api/contracts.ts';
import type { LedgerService } from '../events/ledger.ts';
import { Retention } from '../events/retention.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Timers } from '../kernel/timers.ts';
import { inFull, pageOfSessions } from '../store/session-view.ts';
import type { SessionsStore } from '../store/sessions.ts';
import { sessionsFile, sessionsIn } from '../store/sqlite/sessions.ts';

/** Sessions of one step of retention. */
const STEP_SESSIONS_MAX = 20;

/**
 * The sessions that the workers keep, by a connection of control's own: operators list, read and remove them, and old ones go.
 * Nothing is opened, nor made, before a worker has kept one.
 */
export class KeptSessions {
  readonly #file: string;
  readonly #store: SessionsStore;
  readonly #ledger: LedgerService;
  readonly #retention: Retention;

  constructor(options: { dataDir: string; ledger: LedgerService; clock: Clock; timers: Timers; log: Log }) {
    const { dataDir, ledger, clock, timers, log } = options;
    this.#file = sessionsFile(dataDir);
    this.#store = sessionsIn(dataDir);
    this.#ledger = ledger;
    const trim = async ({ since, bytesMax }: { since: number; bytesMax: number }, limit: number) =>
      this.#isThere
        ? this.#store.sweep({ sinceMs: since, bytesMax, limit: Math.min(limit, STEP_SESSIONS_MAX) })
        : { removed: 0, more: false };
    this.#retention = new Retention({ trim }, clock, timers, (error) =>
      log.warn({ err: error }, 'old sessions could not be removed'),
    );
  }

  get #isThere(): boolean {
    return existsSync(this.#file);
  }

  /** `sessions.keep` */
  keep({ age, size }: { age: number; size: number }): void {
    this.#retention.keep({ ageMs: age, sizeBytes: size });
  }

  async close(): Promise<void> {
    this.#retention.stop();
    await this.#store.close();
  }

  /** Armature's id of the request that was answered with that response; undefined where none is kept. */
  async requestOf(response: string): Promise<string | undefined> {
    return this.#isThere ? this.#store.requestOf({ response }) : undefined;
  }

  /** What the management API shows and does of them. */
  get surface(): Pick<Surface, 'sessions' | 'session' | 'removeSession'> {
    return {
      sessions: async (asked) => {
        if (this.#isThere) return pageOfSessions(this.#store, asked);
        return asked.after === undefined ? { data: [], next: null } : undefined;
      },
      session: async (id) => {
        const found = this.#isThere ? await this.#store.show({ id }) : undefined;
        return found && inFull(found);
      },
      removeSession: async (id, actor) => {
        const removed = this.#isThere ? await this.#store.remove({ id }) : undefined;
        if (!removed) return false;
        const { tenant, turns } = removed;
        this.#ledger.append({
          type: 'session-removed',
          subject: `session:${id}`,
          actor,
          data: { tenant, turns },
        });
        return true;
      },
    };
  }
}

interface Log {
  warn(fields: object, message: string): void;
}
