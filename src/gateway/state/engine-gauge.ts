import { GAUGE_STALE_MS, type GaugeReading } from '../../links/messages.ts';

/**
 * What an engine tells of its own load, as control read it last. It is gone by while it is fresh: what is not known is not
 * zero.
 */
export class EngineGauge {
  /** Requests that wait in the engine, and that it works on. */
  waiting: number | undefined;
  running: number | undefined;
  /** Share of its cache in use, 0 to 1. */
  cacheUsed: number | undefined;
  /** When it was read, on this worker's monotonic clock. */
  readAt = Number.NEGATIVE_INFINITY;
  /** The most requests that this worker had there between the last two readings: those are no news. */
  #own = 0;
  #ownNow = 0;

  read(reading: GaugeReading, inflight: number, now: number): void {
    this.waiting = reading.waiting;
    this.running = reading.running;
    this.cacheUsed = reading.cacheUsed;
    this.readAt = now - (reading.ageMs ?? 0);
    this.#own = Math.max(this.#ownNow, inflight);
    this.#ownNow = inflight;
  }

  /** A request of this worker was sent there; `inflight` with it. */
  sent(inflight: number): void {
    if (inflight > this.#ownNow) this.#ownNow = inflight;
  }

  isFresh(now: number): boolean {
    return now - this.readAt <= GAUGE_STALE_MS;
  }

  /**
   * Requests there that somebody else sent: at least so many, since a reading is up to a second old and this worker's own
   * come and go meanwhile. undefined where nothing fresh is known.
   */
  others(now: number): number | undefined {
    const { waiting, running } = this;
    if ((waiting === undefined && running === undefined) || !this.isFresh(now)) return undefined;
    return Math.max(0, (waiting ?? 0) + (running ?? 0) - this.#own);
  }
}
