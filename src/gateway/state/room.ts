import type { Endpoint } from './endpoint.ts';
import type { WaitingLine } from './waiting-line.ts';

/** How long after the last critical request places are kept for the next. */
const KEPT_FOR_MS = 10_000;

/** The last free places of a backend, which are kept for critical requests while there are any. */
export class KeptPlaces {
  /** Share of the places, from 0 to 1. */
  share = 0;
  #seenAt = Number.NEGATIVE_INFINITY;

  /** A critical request has come. */
  seen(now: number): void {
    this.#seenAt = now;
  }

  inForce(now: number): boolean {
    return this.share > 0 && now - this.#seenAt < KEPT_FOR_MS;
  }
}

interface Places {
  readonly line: WaitingLine;
  readonly endpoints: readonly Endpoint[];
}

/** Whether there is a place that one of this priority may have; rank 0 may have any that is free. */
export function isRoomFor(rank: number, { line, endpoints }: Places, now: number): boolean {
  const { kept } = line;
  const keeps = rank > 0 && kept.inForce(now);
  let free = 0;
  let places = 0;
  for (const endpoint of endpoints) {
    if (endpoint.waitMs(now) > 0) continue;
    const { hasRoom } = endpoint;
    if (hasRoom && !keeps) return true;
    if (!keeps) continue;
    const { limit } = endpoint;
    places += limit;
    if (hasRoom) free += Math.max(1, limit - endpoint.inflight);
  }
  return free > Math.floor(kept.share * places);
}
