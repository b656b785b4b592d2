import type { SessionInFull, SessionSummary, SessionsStore } from './sessions.ts';

/** A session as operators are shown it. */
export interface SessionView {
  id: string;
  tenant: string;
  turns: number;
  /** ISO 8601, UTC. */
  updatedAt: string;
  createdAt: string;
  kind: 'conversation' | 'tree';
}

/** With every turn, and what answered it. */
export interface SessionViewInFull extends SessionView {
  metadata: Record<string, string>;
  responses: {
    id: string;
    previous: string | null;
    at: string;
    status: string;
    backend: string;
    model: string;
    request: string;
    input: unknown[];
    response: Record<string, unknown>;
  }[];
  items: unknown[];
}

/** One page of them, last continued first; undefined where `after` is none of them. */
export async function pageOfSessions(
  store: SessionsStore,
  { limit, after, tenant }: { limit: number; after?: string | undefined; tenant?: string | undefined },
): Promise<{ data: SessionView[]; next: string | null } | undefined> {
  const found = await store.list({
    limit: limit + 1,
    ...(after === undefined ? {} : { after }),
    ...(tenant === undefined ? {} : { tenant }),
  });
  const data = found?.slice(0, limit).map(shown);
  return data && { data, next: found!.length > limit ? data.at(-1)!.id : null };
}

const iso = (ms: number): string => new Date(ms).toISOString();

function shown({ id, tenant, turns, updatedMs, createdMs, conversation }: SessionSummary): SessionView {
  const kind = conversation ? 'conversation' : 'tree';
  return { id, tenant, turns, updatedAt: iso(updatedMs), createdAt: iso(createdMs), kind };
}

export function inFull(session: SessionInFull): SessionViewInFull {
  const bodies = session.items.map((item) => ({ ...item, body: JSON.parse(item.body) as unknown }));
  const byResponse = Map.groupBy(bodies, ({ response }) => response);
  const of = (response: string, output: boolean) =>
    (byResponse.get(response) ?? []).filter((item) => item.output === output).map(({ body }) => body);
  return {
    ...shown(session),
    metadata: JSON.parse(session.metadata) as Record<string, string>,
    responses: session.responses.map(({ id, parent, atMs, body, ...each }) => ({
      id,
      previous: parent,
      at: iso(atMs),
      ...each,
      input: of(id, false),
      response: { ...(JSON.parse(body) as Record<string, unknown>), output: of(id, true) },
    })),
    items: bodies.filter(({ listed }) => listed).map(({ body }) => body),
  };
}
