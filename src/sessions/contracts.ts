import type { LedgerEvent } from '../events/contracts.ts';
import type { EventDraft } from '../events/event-maker.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Timers } from '../kernel/timers.ts';
import type { SessionsStore } from '../store/sessions.ts';

/** What responses and conversations need from outside. */
export interface SessionsDeps {
  store: SessionsStore;
  clock: Clock;
  timers: Timers;
  /** Of this process: by it others tell whose a conversation is. */
  boot: string;
  makeEvent: (draft: EventDraft) => LedgerEvent;
}
