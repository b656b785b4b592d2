import type { LimitSample } from './limit-contract.ts';

const SAMPLES_MIN = 10;
const WINDOW_MS = 1_000;

/** What the published controllers are fed: not single answers, but what a window of them came to. */
export class LimitWindow {
  late = 0;
  /** Requests. */
  inFlightMax = 0;
  #ratios = 0;
  #count = 0;
  #since = 0;

  /** True when the window is full: at least 10 answers and one second. */
  add(sample: LimitSample, now: number): boolean {
    if (this.#count === 0) this.#since = now;
    this.#count++;
    this.#ratios += sample.ratio;
    if (sample.share > 1) this.late++;
    this.inFlightMax = Math.max(this.inFlightMax, sample.inFlight / sample.unit);
    return this.#count >= SAMPLES_MIN && now - this.#since >= WINDOW_MS;
  }

  /** Mean latency, in multiples of what each size takes at least. */
  get ratio(): number {
    return this.#ratios / this.#count;
  }

  clear(): void {
    this.late = this.inFlightMax = this.#ratios = this.#count = 0;
  }
}
