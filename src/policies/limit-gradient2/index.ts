import { WindowedLimit } from '../limit-window.ts';

const SMOOTHING = 0.2;
const QUEUE = 4;
const TOLERANCE = 1.5;
const LONG_WINDOW = 600;
const WARM_UP = 10;
const DRIFT = 2;
const DRIFT_DECAY = 0.95;
const BACK_OFF = 0.9;

/** Gradient2 of Netflix's concurrency-limits: the latency of now against that of a long while. */
export class Gradient2Limit extends WindowedLimit {
  readonly name = 'gradient2';
  #long = 0;
  #windows = 0;

  protected judge(ratio: number): void {
    this.#windows++;
    // While it warms up the long mean is a plain one.
    const part = this.#windows <= WARM_UP ? 1 / this.#windows : 2 / (LONG_WINDOW + 1);
    this.#long += part * (ratio - this.#long);
    if (this.#long / ratio > DRIFT) this.#long *= DRIFT_DECAY;
    if (this.inFlightMax < this.requests / 2) return;
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * this.#long) / ratio));
    const next = this.requests * gradient + QUEUE;
    this.set(this.requests * (1 - SMOOTHING) + next * SMOOTHING);
  }

  dropped(): void {
    this.set(this.requests * BACK_OFF);
  }
}
