import type { LimitController, LimitSample } from '../limit-contract.ts';
import { LimitWindow } from '../limit-window.ts';

const LIMIT_FIRST = 20;
const LIMIT_MIN = 1;
const LIMIT_MAX = 100_000;

/** Vegas of Netflix's concurrency-limits: keeps a short queue, reckoned from the latency over its floor. */
export class VegasLimit implements LimitController {
  readonly name = 'vegas';
  readonly version = 1;
  starting = false;
  #requests = LIMIT_FIRST;
  #unit = 1;
  readonly #window = new LimitWindow();

  get limit(): number {
    return this.#requests * this.#unit;
  }

  observe(sample: LimitSample, now: number): void {
    this.#unit = sample.unit;
    if (!this.#window.add(sample, now)) return;
    const { ratio, inFlightMax, late } = this.#window;
    this.#window.clear();
    const limit = this.#requests;
    const step = stepOf(limit);
    if (late > 0) this.#set(limit - step);
    else if (2 * inFlightMax >= limit) {
      const queue = Math.ceil(limit * (1 - 1 / Math.max(1, ratio)));
      if (queue <= step) this.#set(limit + 6 * step);
      else if (queue < 3 * step) this.#set(limit + step);
      else if (queue > 6 * step) this.#set(limit - step);
    }
  }

  dropped(): void {
    this.#set(this.#requests - stepOf(this.#requests));
  }

  restart(units: number): void {
    this.#set(Math.min(this.#requests, units / this.#unit));
    this.#window.clear();
  }

  #set(requests: number): void {
    this.#requests = Math.max(LIMIT_MIN, Math.min(LIMIT_MAX, requests));
  }
}

const stepOf = (limit: number) => Math.max(1, Math.floor(Math.log10(limit)));
