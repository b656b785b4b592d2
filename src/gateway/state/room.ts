import type { Endpoint } from './endpoint.ts';
import type { WaitingLine } from './waiting-line.ts';

/** How long after the last one that they are kept for. */
const KEPT_FOR_MS = 10_000;
/** Of so many places one is kept for tenants with less than their share; below so many, none. */
const PLACES_PER_KEPT = 32;
const PLACES_MIN = 8;

/** Who asks for a place. */
export interface Claim {
  /** Place of its priority, 0 the highest. */
  readonly rank: number;
  readonly tenant: string;
  readonly share: number;
}

/**
 * The last free places of a backend: some are kept for critical requests while there are any, some for tenants that have
 * less than their share of the places while there are several, so that whoever comes finds one at once.
 */
export class KeptPlaces {
  /** Share of the places that are kept for critical requests, from 0 to 1. */
  share = 0;
  /** Places that each tenant has, where it has any. */
  readonly #held = new Map<string, { places: number; share: number }>();
  #places = 0;
  #shares = 0;
  #criticalAt = Number.NEGATIVE_INFINITY;
  #mixedAt = Number.NEGATIVE_INFINITY;
  #lastTenant: string | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  /** A request has come. */
  seen({ rank, tenant }: Claim, now: number): void {
    if (rank === 0) this.#criticalAt = now;
    if (tenant !== this.#lastTenant) {
      this.#lastTenant = tenant;
      if (now - this.#lastAt < KEPT_FOR_MS) this.#mixedAt = now;
    }
    this.#lastAt = now;
  }

  /** A tenant has one place more, or less. */
  began(tenant: string, share: number): void {
    const held = this.#held.get(tenant);
    this.#places++;
    if (held && held.places++ > 0) return;
    if (!held) this.#held.set(tenant, { places: 1, share });
    else held.share = share;
    this.#shares += share;
  }

  ended(tenant: string): void {
    const held = this.#held.get(tenant);
    if (!held || held.places === 0) return;
    this.#places--;
    if (--held.places > 0) return;
    this.#shares -= held.share;
    if (this.#places > 0) return;
    // Now and then nobody is there: names that are not used any more go, and so does the dust of sums.
    this.#held.clear();
    this.#shares = 0;
  }

  inForce(now: number): boolean {
    return now - this.#mixedAt < KEPT_FOR_MS || (this.share > 0 && now - this.#criticalAt < KEPT_FOR_MS);
  }

  /** How many of the backend's places this one leaves free. */
  leaves(claim: Claim, places: number, now: number): number {
    if (claim.rank === 0) return 0;
    // Half at most: where the rest is taken, one of those who have it wakes whoever waits when it ends.
    const share = Math.min(0.5, this.share);
    const critical = now - this.#criticalAt < KEPT_FOR_MS ? Math.floor(share * places) : 0;
    if (places < PLACES_MIN || now - this.#mixedAt >= KEPT_FOR_MS || !this.#hasItsShare(claim))
      return critical;
    return Math.max(critical, 1, Math.floor(places / PLACES_PER_KEPT));
  }

  #hasItsShare({ tenant, share }: Claim): boolean {
    const places = this.#held.get(tenant)?.places ?? 0;
    if (places === 0) return false;
    // One that has them all, while others come and go, has more than its share.
    return places === this.#places || places * this.#shares > this.#places * share;
  }
}

interface Places {
  readonly line: WaitingLine;
  readonly endpoints: readonly Endpoint[];
}

/** Whether there is a place that this one may have. */
export function isRoomFor(claim: Claim, { line, endpoints }: Places, now: number): boolean {
  const { kept } = line;
  const keeps = claim.rank > 0 && kept.inForce(now);
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
  return free > 0 && free > kept.leaves(claim, places, now);
}
