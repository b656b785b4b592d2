import type { LimitController, LimitSample } from '../limit-contract.ts';
import { LimitWindow } from '../limit-window.ts';

const LIMIT_FIRST = 20;
const LIMIT_MIN = 1;
const LIMIT_MAX = 100_000;
const SMOOTHING = 0.2;
const QUEUE = 4;
const TOLERANCE = 1.5;
const LONG_WINDOW = 600;
const WARM_UP = 10;
const DRIFT = 2;
const DRIFT_DECAY = 0.95;

/** Gradient2 of Netflix's concurrency-limits: the latency of now against that of a long while. */
export class Gradient2Limit implements LimitController {
  readonly name = 'gradient2';
  readonly version = 1;
  starting = false;
  #requests = LIMIT_FIRST;
  #unit = 1;
  #long = 0;
  #windows = 0;
  readonly #window = new LimitWindow();

  get limit(): number {
    return this.#requests * this.#unit;
  }

  observe(sample: LimitSample, now: number): void {
    this.#unit = sample.unit;
    if (!this.#window.add(sample, now)) return;
    const { ratio, inFlightMax } = this.#window;
    this.#window.clear();
    this.#windows++;
    // While it warms up the long mean is a plain one.
    const part = this.#windows <= WARM_UP ? 1 / this.#windows : 2 / (LONG_WINDOW + 1);
    this.#long += part * (ratio - this.#long);
    if (this.#long / ratio > DRIFT) this.#long *= DRIFT_DECAY;
    if (inFlightMax < this.#requests / 2) return;
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * this.#long) / ratio));
    const next = this.#requests * gradient + QUEUE;
    this.#set(this.#requests * (1 - SMOOTHING) + next * SMOOTHING);
  }

  dropped(): void {
    this.#set(this.#requests * 0.9);
  }

  restart(units: number): void {
    this.#set(Math.min(this.#requests, units / this.#unit));
    this.#window.clear();
  }

  #set(requests: number): void {
    this.#requests = Math.max(LIMIT_MIN, Math.min(LIMIT_MAX, requests));
  }
}
