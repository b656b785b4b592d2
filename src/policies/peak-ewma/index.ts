/** Time constant, milliseconds. */
const TAU_MS = 10_000;

/**
 * A mean that follows a slower answer at once and forgets it over ten seconds, so that an endpoint that stalls is known
 * by its first slow answer. Source: PeakEwma of twitter/finagle.
 */
export class PeakEwma {
  /** Undefined before the first. */
  value: number | undefined;
  /** When the last one came. */
  at = 0;

  observe(value: number, now: number): void {
    if (this.value === undefined || value > this.value) this.value = value;
    else {
      const kept = Math.exp(-(now - this.at) / TAU_MS);
      this.value = this.value * kept + value * (1 - kept);
    }
    this.at = now;
  }
}
