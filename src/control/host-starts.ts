import type { LedgerService } from '../events/ledger.ts';
import { STARTS_KEPT } from './host-standings.ts';

/** How long the last starts of a backend's host took, milliseconds, the oldest first: the ledger knows. */
export async function startsOf(ledger: LedgerService, backend: string): Promise<number[]> {
  const query = {
    type: 'host-ready',
    subject: `backend:${backend}`,
    order: 'desc',
    limit: STARTS_KEPT,
  } as const;
  const ready = await ledger.store.ledger.events(query);
  return ready
    .flatMap(({ event }) => (typeof event.data['tookMs'] === 'number' ? [event.data['tookMs']] : []))
    .reverse();
}
