import type { SessionInFull, SessionSummary } from './sessions.ts';

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

const iso = (ms: number): string => new Date(ms).toISOString();

export function shown({
  id,
  tenant,
  turns,
  updatedMs,
  createdMs,
  conversation,
}: SessionSummary): SessionView {
  const kind = conversation ? 'conversation' : 'tree';
  return { id, tenant, turns, updatedAt: iso(updatedMs), createdAt: iso(createdMs), kind };
}

export function inFull(session: SessionInFull): SessionViewInFull {
  const bodies = session.items.map((item) => ({ ...item, body: JSON.parse(item.body) as unknown }));
  const of = (response: string, output: boolean) =>
    bodies.filter((item) => item.response === response && item.output === output).map(({ body }) => body);
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
