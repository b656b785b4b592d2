import type { Clock } from '../kernel/clock.ts';
import type { HostReading, PartNotice } from '../links/messages.ts';
import { hostPart } from '../supervisor/parts.ts';

/** Starts of one backend's host that its expected time is the mean of. */
export const STARTS_KEPT = 5;

/** A host that is started again only after so long keeps dying: it has died five times without a quiet minute. */
const FAILING_MS = 3000;

interface Standing {
  /** When its start began or will begin, monotonic. */
  beganAt: number;
  /** When it came to serve, as far as this control knows, monotonic. */
  servingAt: number | undefined;
  /** How long its last starts took, milliseconds. */
  tookMs: number[];
  cause: string | undefined;
  /** It has died so often that it waits for long before it is started again. */
  failing: boolean;
}

/** How each host of ours stands: since when it starts, how long that takes, and the event that it stands so for. */
export class HostStandings {
  readonly #clock: Clock;
  readonly #of = new Map<string, Standing>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** These backends are served by hosts of ours, and no others. */
  keep(backends: readonly string[]): void {
    for (const name of this.#of.keys()) if (!backends.includes(name)) this.#of.delete(name);
    for (const name of backends) this.#get(name);
  }

  /** How long starts took before, in their order. */
  learn(backend: string, tookMs: readonly number[]): void {
    const { tookMs: all } = this.#get(backend);
    all.push(...tookMs);
    all.splice(0, all.length - STARTS_KEPT);
  }

  /** What the supervisor tells of its part; `event` is what became of that in the ledger. Gives whether it matters. */
  heard(backend: string, notice: PartNotice, event: string): boolean {
    const standing = this.#of.get(backend);
    if (!standing || (notice.type === 'part-started' && notice.adopted)) return false;
    const agoMs = Math.max(0, this.#clock.wall() - notice.wallMs);
    const waitMs = notice.type === 'part-left' ? (notice.restartInMs ?? 0) : 0;
    standing.beganAt = this.#clock.mono() - agoMs + waitMs;
    standing.failing = waitMs >= FAILING_MS;
    if (notice.type === 'part-left') standing.cause = event;
    return true;
  }

  /** Its process is loading, and has been up for so long. */
  loading(backend: string, upMs: number): void {
    const standing = this.#get(backend);
    standing.beganAt = this.#clock.mono() - upMs;
    standing.failing = false;
  }

  /** It is to start now, for this event. */
  begins(backend: string, event: string): void {
    const standing = this.#get(backend);
    standing.beganAt = this.#clock.mono();
    standing.cause = event;
  }

  /** It serves, or does not any more. */
  serves(backend: string, yes: boolean, event: string | undefined): void {
    const standing = this.#get(backend);
    if (!yes && standing.servingAt !== undefined) standing.beganAt = this.#clock.mono();
    standing.servingAt = yes ? (standing.servingAt ?? this.#clock.mono()) : undefined;
    standing.cause = event;
  }

  /** The event that it stands so for, a cause of the next. */
  cause(backend: string): string | undefined {
    return this.#of.get(backend)?.cause;
  }

  /** Since when it serves, as far as this control knows; undefined where it does not. */
  servingAt(backend: string): number | undefined {
    return this.#of.get(backend)?.servingAt;
  }

  /** What workers are told of it. */
  reading(backend: string, state: HostReading['state']): HostReading {
    const { beganAt, tookMs, cause, failing } = this.#get(backend);
    return {
      state: state === 'starting' && failing ? 'failing' : state,
      ...((state === 'starting' || state === 'fetching') && {
        startingMs: Math.round(this.#clock.mono() - beganAt),
      }),
      ...(tookMs.length > 0 && { expectedMs: mean(tookMs) }),
      ...(cause !== undefined && { cause }),
    };
  }

  #get(backend: string): Standing {
    let standing = this.#of.get(backend);
    if (!standing) {
      standing = {
        beganAt: this.#clock.mono(),
        servingAt: undefined,
        tookMs: [],
        cause: undefined,
        failing: false,
      };
      this.#of.set(backend, standing);
    }
    return standing;
  }
}

/** The backend that a part is the host of, among these. */
export function backendOfPart(part: string, backends: readonly string[]): string | undefined {
  return backends.find((backend) => hostPart(backend) === part);
}

function mean(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
}
