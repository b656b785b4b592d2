import type { Ledger } from '../../store/contracts.ts';

/** What may follow from an alarm of drift before a new version does, each from the one before it. */
const FOLLOWS = new Set(['drift-confirmed', 'retraining-asked', 'retraining-failed']);
const LOOKED_AT = 20;

/**
 * The last event that came of an alarm: the retraining that was asked for, where there was one, so that whoever walks back
 * from a new version comes by it. The alarm itself where nothing came of it, or it is not kept any more.
 */
export async function cameOf(alarm: string, ledger: Ledger): Promise<string> {
  const told = await ledger.event(alarm);
  if (!told) return alarm;
  const { subject } = told.event;
  const later = await ledger.events({ subject, order: 'asc', after: told.position, limit: LOOKED_AT });
  let last = alarm;
  for (const { event } of later) if (FOLLOWS.has(event.type) && event.causes.includes(last)) last = event.id;
  return last;
}
