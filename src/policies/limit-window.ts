import type { LimitController, LimitSample } from './limit-contract.ts';

const LIMIT_FIRST = 20;
const LIMIT_MIN = 1;
const LIMIT_MAX = 100_000;
const SAMPLES_MIN = 10;
const WINDOW_MS = 1_000;

/**
 * What the published controllers have in common: they count requests, and are fed not single answers, but what a window of
 * them came to.
 */
export abstract class WindowedLimit implements LimitController {
  abstract readonly name: string;
  readonly version = 1;
  readonly starting = false;
  protected requests = LIMIT_FIRST;
  /** Of the window: answers that came too late, and the most requests in flight. */
  protected late = 0;
  protected inFlightMax = 0;
  #unit = 1;
  #ratios = 0;
  #count = 0;
  #since = 0;

  get limit(): number {
    return this.requests * this.#unit;
  }

  /** The window is over: at least 10 answers and one second. `ratio`: mean latency, in multiples of what each size takes at least. */
  protected abstract judge(ratio: number): void;
  abstract dropped(): void;

  observe(sample: LimitSample, now: number): void {
    this.#unit = sample.unit;
    if (this.#count === 0) this.#since = now;
    this.#count++;
    this.#ratios += sample.ratio;
    if (sample.share > 1) this.late++;
    this.inFlightMax = Math.max(this.inFlightMax, sample.inFlight / sample.unit);
    if (this.#count < SAMPLES_MIN || now - this.#since < WINDOW_MS) return;
    this.judge(this.#ratios / this.#count);
    this.#clear();
  }

  restart(units: number): void {
    this.set(Math.min(this.requests, units / this.#unit));
    this.#clear();
  }

  protected set(requests: number): void {
    this.requests = Math.max(LIMIT_MIN, Math.min(LIMIT_MAX, requests));
  }

  #clear(): void {
    this.late = this.inFlightMax = this.#ratios = this.#count = 0;
  }
}
