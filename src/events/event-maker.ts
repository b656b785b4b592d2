import type { Clock } from '../kernel/clock.ts';
import { idMaker } from '../kernel/ids.ts';
import type { Random } from '../kernel/random.ts';
import type { LedgerEvent } from './contracts.ts';

/** What happened, without the id and time that the ledger gives it. */
export interface EventDraft {
  type: string;
  subject: string;
  /** `armature` unless somebody else did it. */
  actor?: string;
  causes?: string[];
  data?: Record<string, unknown>;
  /** When it happened, milliseconds since the epoch, where that was not now. */
  wallMs?: number;
}

/** Gives drafts their id (`ev_...`), and the time of now where they have none. */
export function eventMaker(clock: Clock, random: Random): (draft: EventDraft) => LedgerEvent {
  const makeId = idMaker('ev', random);
  return ({ type, subject, actor = 'armature', causes = [], data = {}, wallMs = clock.wall() }) => {
    return { id: makeId(wallMs), at: new Date(wallMs).toISOString(), type, subject, actor, causes, data };
  };
}
