import { idTime } from '../kernel/ids.ts';
import type { Store, StoredEvent, StoredOrigin } from '../store/contracts.ts';
import type { LedgerEvent } from './contracts.ts';
import { Chain } from './why-chain.ts';

/** One decision, or one event, in the chain of causes of another. */
export interface WhyStep {
  /** ISO 8601, milliseconds, UTC. */
  at: string;
  /** The part of the path that decided, or the kind of thing that an event is about. */
  what: string;
  code: string;
  /** The code and its figures, in words. */
  reason: string;
  figures: Record<string, unknown>;
  /** Where the configuration value comes from that mattered most; null where none did. */
  origin: WhyOrigin | null;
  /** Ids of the events that it follows from; the figures of their steps name them as `event` or `request`. */
  causes: string[];
}

/** `path` is the value itself, or what holds it where the value is a default. */
export type WhyOrigin = StoredOrigin & { path: string };

export interface Why {
  id: string;
  subject: string;
  /** Newest decision first, each cause after what it caused. */
  steps: WhyStep[];
}

export interface WhySource {
  store: Pick<Store, 'ledger' | 'snapshots'>;
  /** Finds an event that may still be on its way from its worker; see LedgerService.find. */
  find(id: string, withinMs: number): Promise<StoredEvent | undefined>;
  /** Ids of events that tell more of a subject than its own do, such as what was decided about it. */
  related?(subject: string): Promise<string[]>;
}

/** How long a record that may be on its way is waited for. */
const ON_ITS_WAY_MS = 500;
/** The newest events of a subject that its chain begins with. */
const SUBJECT_EVENTS = 5;
const GROUPS_MAX = 1000;
/** A worker that died so soon after a request came may have taken its record with it: answers take minutes. */
const DEATH_WITHIN_MS = 15 * 60_000;
const DEATHS_MAX = 5;

/** What stands before the name of a subject, so that `why worker:0`, `why key_...` and `why BACKEND|ADDRESS` all work. */
const SUBJECTS = [
  '',
  'endpoint:',
  'key:',
  'snapshot:',
  'worker:',
  'part:',
  'backend:',
  'route:',
  'request:',
  'batch:',
  'session:',
  'release:',
  'retirement:',
  'parity:',
  'version:',
  'decision:',
];
const NO_REQUEST_ID = /^(ev|key|batch|rel|ret|par|dec)_/;

/**
 * The chain of causes of a request (by Armature's id or the caller's), an event, or a subject such as `snapshot:3`,
 * `endpoint:BACKEND|ADDRESS` or `worker:0`. Undefined where nothing is known of it; `nothingKnown` says why.
 */
export async function why(source: WhySource, id: string): Promise<Why | undefined> {
  const { store } = source;
  const event = (await source.find(id, ON_ITS_WAY_MS))?.event;
  if (event) return tell(store, id, event.subject, [event]);
  const [request] = await store.ledger.requests(id, 1);
  if (request) return tell(store, id, request.event.subject, [request.event]);
  for (const prefix of SUBJECTS) {
    const subject = prefix + id;
    const found = await store.ledger.events({ order: 'desc', subject, limit: SUBJECT_EVENTS });
    const newest = [...found.map((stored) => stored.event), ...(await relatedTo(source, subject))];
    if (newest.length > 0) return tell(store, id, subject, newest);
  }
  return NO_REQUEST_ID.test(id) ? undefined : withoutRecord(store, id);
}

async function relatedTo({ store, related }: WhySource, subject: string): Promise<LedgerEvent[]> {
  const ids = (await related?.(subject)) ?? [];
  const found = await Promise.all(ids.map((id) => store.ledger.event(id)));
  return found.flatMap((stored) => (stored ? [stored.event] : []));
}

/** Why nothing is known of an id, for whoever asked. */
export function nothingKnown(id: string): string {
  const madeMs = idTime(id);
  if (madeMs === undefined) {
    return `Nothing is known of '${id}'. Where it is a caller's own x-request-id, its record may not have been kept: only Armature's id, x-armature-id of the answer, carries its second, by which what is known of the rest is found.`;
  }
  const at = new Date(madeMs).toISOString();
  return `Nothing is known of '${id}', which was made at ${at}: neither a record, nor a count of its second. Older events than \`store.keep\` allows are removed.`;
}

async function tell(
  store: WhySource['store'],
  id: string,
  subject: string,
  roots: LedgerEvent[],
): Promise<Why> {
  const chain = new Chain(store);
  await chain.follow(roots);
  return { id, subject, steps: chain.steps() };
}

/** Above the rate of full records the groups of its second are what is known of a request; where there are none, deaths. */
async function withoutRecord(store: WhySource['store'], id: string): Promise<Why | undefined> {
  const madeMs = idTime(id);
  if (madeMs === undefined) return undefined;
  const groups = await store.ledger.groups(Math.floor(madeMs / 1000), GROUPS_MAX);
  const deaths = groups.length > 0 ? [] : await deathsAfter(store, madeMs);
  if (groups.length === 0 && deaths.length === 0) return undefined;
  const kinds = addedUp(groups.map((stored) => stored.event));
  const requests = kinds.reduce((sum, kind) => sum + Number(kind.data.count), 0);
  const second = new Date(Math.floor(madeMs / 1000) * 1000).toISOString();
  const chain = new Chain(store);
  chain.say(
    // A record is lost when its worker dies.
    Math.max(madeMs, ...deaths.map((death) => Date.parse(death.at))),
    'record',
    groups.length > 0 ? 'record-not-kept' : 'record-not-found',
    { request: id, second, kinds: kinds.length, requests },
    [...kinds, ...deaths].map((event) => event.id),
  );
  await chain.follow([...kinds, ...deaths]);
  return { id, subject: `request:${id}`, steps: chain.steps() };
}

/** Counts of one kind are handed out in parts: by several workers, and while a second lasts. */
function addedUp(groups: LedgerEvent[]): LedgerEvent[] {
  const sums = new Map<string, LedgerEvent>();
  for (const group of groups) {
    const { route, tenant, reason, count } = group.data;
    const key = `${route}|${tenant}|${reason}`;
    const sum = sums.get(key);
    if (sum) sum.data.count = Number(sum.data.count) + Number(count);
    else sums.set(key, { ...group, data: { ...group.data } });
  }
  return [...sums.values()];
}

async function deathsAfter(store: WhySource['store'], sinceMs: number): Promise<LedgerEvent[]> {
  const newest = await store.ledger.events({ order: 'desc', type: 'worker-died', limit: GROUPS_MAX });
  const near = newest.filter(({ event }) => {
    const atMs = Date.parse(event.at);
    return atMs >= sinceMs && atMs <= sinceMs + DEATH_WITHIN_MS;
  });
  return near.slice(-DEATHS_MAX).map((stored) => stored.event);
}
