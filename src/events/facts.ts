import type { Fact, LedgerEvent, Outcome } from './contracts.ts';

const TYPES: Record<Outcome, string> = {
  ok: 'request-answered',
  degraded: 'request-degraded',
  refused: 'request-refused',
  failed: 'request-failed',
  aborted: 'request-aborted',
  invalid: 'request-invalid',
};

/**
 * The event that a worker's fact becomes. A request's event carries the request's own id, so that whatever follows from
 * it can name it as its cause; its data is the record. `makeId` makes the ids of groups, which have none. Throws for what
 * is no fact.
 */
export function eventOf(fact: Fact, makeId: (wallMs: number) => string): LedgerEvent {
  switch (fact.kind) {
    case 'event':
      // Its time is that of the ledger from here on.
      return { ...fact.event, at: new Date(fact.event.at).toISOString() };
    case 'request': {
      const { record } = fact;
      return {
        id: record.id,
        at: new Date(record.wallMs + record.durationMs).toISOString(),
        type: TYPES[record.outcome],
        subject: `request:${record.id}`,
        actor: `tenant:${record.tenant}`,
        causes: [record.snapshotEvent],
        data: { ...record },
      };
    }
    case 'evidence': {
      const { evidence } = fact;
      return {
        id: makeId(evidence.toMs),
        at: new Date(evidence.toMs).toISOString(),
        type: 'evidence-gathered',
        subject: `release:${evidence.release}`,
        actor: 'armature',
        causes: [],
        data: { ...evidence },
      };
    }
    case 'group': {
      const { kind: _kind, ...data } = fact;
      const wallMs = fact.second * 1000;
      return {
        id: makeId(wallMs),
        at: new Date(wallMs).toISOString(),
        type: 'requests-grouped',
        subject: `route:${fact.route}`,
        actor: `tenant:${fact.tenant}`,
        causes: [],
        data,
      };
    }
  }
}
