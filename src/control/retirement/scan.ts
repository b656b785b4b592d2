import type { LedgerEvent } from '../../events/contracts.ts';
import { Callers, isCall } from '../../releases/retirement/calls.ts';
import type { RetirementPlan, Subject } from '../../releases/retirement/contracts.ts';
import { EVENTS_PAGE_MAX, type Ledger } from '../../store/contracts.ts';

/** Events that are looked through for a plan; the newest. */
const SCANNED_MAX = 1_000_000;

/** Who has called since then, out of the ledger, newest first. */
export async function callersSince(
  ledger: Ledger,
  subject: Subject,
  sinceMs: number,
): Promise<Pick<RetirementPlan, 'callers' | 'looked'>> {
  const callers = new Callers();
  const since = new Date(sinceMs).toISOString();
  let events = 0;
  let after: number | undefined;
  let complete = false;
  while (events < SCANNED_MAX && !complete) {
    const page = await ledger.events({
      order: 'desc',
      limit: EVENTS_PAGE_MAX,
      ...(after !== undefined && { after }),
    });
    for (const { event } of page) if (event.at >= since && isCall(event, subject)) callers.add(event);
    events += page.length;
    after = page.at(-1)?.position;
    complete = page.length < EVENTS_PAGE_MAX || page.at(-1)!.event.at < since;
  }
  return { callers: callers.list, looked: { since, events, complete } };
}

/** Calls that came after a position, and the position that has been looked through since. */
export async function callsAfter(
  ledger: Ledger,
  subject: Subject,
  position: number,
): Promise<{ calls: LedgerEvent[]; position: number }> {
  const calls: LedgerEvent[] = [];
  for await (const { event, position: at } of eventsAfter(ledger, position)) {
    position = at;
    if (isCall(event, subject)) calls.push(event);
  }
  return { calls, position };
}

/** Every event after a position, oldest first, up to the newest there is. */
export async function* eventsAfter(ledger: Ledger, position: number) {
  for (let after = position; ; ) {
    const page = await ledger.events({ order: 'asc', after, limit: EVENTS_PAGE_MAX });
    yield* page;
    if (page.length < EVENTS_PAGE_MAX) return;
    after = page.at(-1)!.position;
  }
}
