import type { ArmEvidence } from '../contracts.ts';

/** What was seen so long ago counts half. */
const HALF_LIFE_MS = 10 * 60_000;
/** Of so many requests at least, so many have to fail. */
const REQUESTS_MIN = 50;
const BROKEN_SHARE = 0.2;

export interface StableHealthState {
  requests: number;
  failed: number;
  atMs: number;
}

/** Whether stable itself fails so often, of late, that being no worse than it says nothing. */
export class StableHealth {
  #requests: number;
  #failed: number;
  #atMs: number;

  constructor(state?: StableHealthState) {
    this.#requests = state?.requests ?? 0;
    this.#failed = state?.failed ?? 0;
    this.#atMs = state?.atMs ?? 0;
  }

  observe(stable: ArmEvidence, baseline: ArmEvidence, atMs: number): void {
    const kept = 0.5 ** (Math.max(0, atMs - this.#atMs) / HALF_LIFE_MS);
    this.#requests = kept * this.#requests + stable.requests + baseline.requests;
    this.#failed = kept * this.#failed + stable.failed + baseline.failed;
    this.#atMs = Math.max(this.#atMs, atMs);
  }

  get broken(): boolean {
    return this.#requests >= REQUESTS_MIN && this.#failed >= BROKEN_SHARE * this.#requests;
  }

  /** Share of its requests that fail, 0 to 1. */
  get failing(): number {
    return this.#requests === 0 ? 0 : this.#failed / this.#requests;
  }

  toJSON(): StableHealthState {
    return { requests: this.#requests, failed: this.#failed, atMs: this.#atMs };
  }
}
