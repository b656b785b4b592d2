import { EVENTS_PAGE_MAX, type EventQuery, type Ledger } from '../store/contracts.ts';
import type { LedgerEvent, RequestRecord } from './contracts.ts';
import type { LedgerService } from './ledger.ts';

/** What `/api/v1/events` and `armature events` ask for. */
export interface EventsAsked {
  type?: string | undefined;
  subject?: string | undefined;
  /** Id of an event: only what was stored after it. */
  after?: string | undefined;
  /** At most so many, the oldest of them. All of them where it is absent. Not with `follow`. */
  limit?: number | undefined;
  /** Begins with the newest so many; 1 to EVENTS_PAGE_MAX. Not with `after`. */
  last?: number | undefined;
  /** Goes on with what comes, until the signal. Without `after` and `last` it begins with what comes next. */
  follow?: boolean | undefined;
  /** Ends it; whoever reads must raise it when it stops reading, since a follower may wait without end. */
  signal?: AbortSignal | undefined;
}

/**
 * Events in the order in which they were stored, oldest first, a page at a time. Undefined where `after` is neither an
 * event nor an id that carries a time.
 */
export async function openEvents(
  ledger: LedgerService,
  asked: EventsAsked,
): Promise<AsyncIterable<LedgerEvent> | undefined> {
  await ledger.received();
  const after = await startOf(ledger.store.ledger, asked);
  if (after === undefined) return undefined;
  const filter = {
    ...(asked.type === undefined ? {} : { type: asked.type }),
    ...(asked.subject === undefined ? {} : { subject: asked.subject }),
  };
  if (!asked.follow) return pages(ledger.store.ledger, { ...filter, after }, asked.limit);
  return ledger.follow({ ...filter, after, signal: asked.signal ?? new AbortController().signal });
}

/** The position that the first event comes after. */
async function startOf(
  ledger: Ledger,
  { after, last, follow, type, subject }: EventsAsked,
): Promise<number | undefined> {
  if (after !== undefined) return ledger.position(after);
  if (last !== undefined) {
    const query: EventQuery = { order: 'desc', limit: Math.min(last, EVENTS_PAGE_MAX) };
    if (type !== undefined) query.type = type;
    if (subject !== undefined) query.subject = subject;
    const oldest = (await ledger.events(query)).at(-1);
    return oldest ? oldest.position - 1 : 0;
  }
  return follow ? ledger.head() : 0;
}

async function* pages(
  ledger: Ledger,
  filter: Pick<EventQuery, 'type' | 'subject'> & { after: number },
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<LedgerEvent> {
  let { after } = filter;
  for (let left = limit; left > 0; ) {
    const page = await ledger.events({
      ...filter,
      after,
      order: 'asc',
      limit: Math.min(left, EVENTS_PAGE_MAX),
    });
    for (const { position, event } of page) {
      after = position;
      yield event;
    }
    left -= page.length;
    if (page.length < EVENTS_PAGE_MAX) return;
  }
}

/** The record of a request, by Armature's id or, the newest of them, by the caller's own. */
export async function requestRecord(ledger: LedgerService, id: string): Promise<RequestRecord | undefined> {
  const found = (await ledger.find(id, RECORD_WITHIN_MS)) ?? (await ledger.store.ledger.requests(id, 1))[0];
  const data = found?.event.data;
  return data && Array.isArray(data.steps) ? (data as unknown as RequestRecord) : undefined;
}

/** How long a record that may be on its way from its worker is waited for. */
const RECORD_WITHIN_MS = 500;
