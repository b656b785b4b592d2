import type { LedgerEvent } from '../../src/events/contracts.ts';

/** The events of one numbered batch; the same each time. */
export function batchOf(sequence: number, events: number): LedgerEvent[] {
  return Array.from({ length: events }, (_, n) => ({
    id: `ev_${sequence}_${n}`,
    at: '2026-01-01T00:00:00.000Z',
    type: 'request-failed',
    subject: `request:ev_${sequence}_${n}`,
    actor: 'tenant:web',
    causes: [],
    data: { requestId: `mine-${sequence}`, snapshot: 1, text: 'x'.repeat(500) },
  }));
}
