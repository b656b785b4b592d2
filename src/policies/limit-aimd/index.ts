import type { LimitController, LimitSample } from '../limit-contract.ts';
import { LimitWindow } from '../limit-window.ts';

const LIMIT_FIRST = 20;
const LIMIT_MIN = 1;
const BACK_OFF = 0.9;

/** Additive increase, multiplicative decrease: one request more while all is well, a tenth less where one is too late. */
export class AimdLimit implements LimitController {
  readonly name = 'aimd';
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
    if (this.#window.late > 0) this.#requests = Math.max(LIMIT_MIN, BACK_OFF * this.#requests);
    else if (2 * this.#window.inFlightMax >= this.#requests) this.#requests++;
    this.#window.clear();
  }

  dropped(): void {
    this.#requests = Math.max(LIMIT_MIN, BACK_OFF * this.#requests);
  }

  restart(units: number): void {
    this.#requests = Math.max(LIMIT_MIN, Math.min(this.#requests, units / this.#unit));
    this.#window.clear();
  }
}
