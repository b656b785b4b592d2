import type { LedgerEvent } from '../events/contracts.ts';

/** What events are found by besides id, type and subject; undefined where an event has none. */
export interface Indexed {
  /** The caller's x-request-id of a request. */
  requestId: string | undefined;
  /** The second of a group, since the epoch. */
  second: number | undefined;
  /** The snapshot that a request was decided on. */
  snapshot: number | undefined;
}

export function indexed({ type, data }: LedgerEvent): Indexed {
  const isGroup = type === 'requests-grouped';
  const isRequest = !isGroup && type.startsWith('request-');
  return {
    requestId: isRequest && typeof data.requestId === 'string' ? data.requestId : undefined,
    second: isGroup && typeof data.second === 'number' ? data.second : undefined,
    snapshot: isRequest && typeof data.snapshot === 'number' ? data.snapshot : undefined,
  };
}
