import type { HostReading } from '../../links/messages.ts';
import { type StartInput, startLeftMs } from '../../policies/cold-start/index.ts';

/** How long a host whose connection broke off or was refused is taken to be starting anew, until control has told of it. */
const SUSPECT_MS = 2_000;

/** The process behind a backend of ours, as control told of it; it survives snapshots. */
export class HostState {
  state: StartInput['state'] = 'unknown';
  /** Milliseconds that its starts take; 0 where none was measured. */
  expectedMs = 0;
  /** The event that it stands so for. */
  cause: string | undefined;
  /** When its backend last had a request, monotonic. */
  usedAt: number;
  /** The request that asked for it to be woken, since it was told to be idle. */
  wokenFor: string | undefined;
  /** When its start began or will begin, monotonic. */
  #beganAt: number;
  #suspectUntil = 0;

  constructor(now: number) {
    this.usedAt = this.#beganAt = now;
  }

  /** Gives whether those who wait for it should think again. */
  heard({ state, startingMs, expectedMs = 0, cause }: HostReading, now: number): boolean {
    const beganAt = now - (startingMs ?? 0);
    // Who waits for one that runs, or has come to, keeps its turn.
    const anew = startingMs !== undefined && Math.abs(this.#beganAt - beganAt) > 1_000;
    const changed = state !== this.state || anew;
    this.state = state;
    this.expectedMs = expectedMs;
    this.cause = cause;
    this.#beganAt = beganAt;
    this.wokenFor = undefined;
    return state !== 'running' && (changed || state === 'idle');
  }

  /** A connection to it was refused, or broke off: gives for how long that is taken to mean that it is gone, where that is news. */
  suspect(now: number): number | undefined {
    if (now < this.#suspectUntil) return undefined;
    this.#suspectUntil = now + SUSPECT_MS;
    return SUSPECT_MS;
  }

  /** Whether it is not there now and will be: with `endpoints` addresses that are known of it. */
  coming(endpoints: number, now: number): boolean {
    if (endpoints === 0 || now < this.#suspectUntil) return true;
    return this.state !== 'running' && this.state !== 'unknown';
  }

  startingMs(now: number): number {
    return Math.round(now - this.#beganAt);
  }

  /** Milliseconds until it is expected to serve. */
  leftMs(now: number): number {
    return startLeftMs({
      state: this.state,
      startingMs: this.startingMs(now),
      expectedMs: this.expectedMs,
    });
  }
}
