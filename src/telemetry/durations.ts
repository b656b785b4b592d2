import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

/** Percentiles of a duration, in milliseconds. */
export interface Spread {
  count: number;
  mean: number;
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p999: number;
  max: number;
}

/** An hour, in microseconds: longer ones count as one hour. */
const HIGHEST_US = 3_600_000_000;

/** Times in a histogram of high dynamic range (Node's own), to three digits. */
export class Durations {
  readonly #histogram: RecordableHistogram = createHistogram({ lowest: 1, highest: HIGHEST_US, figures: 3 });

  add(ms: number): void {
    this.#histogram.record(Math.min(HIGHEST_US, Math.max(1, Math.round(ms * 1000))));
  }

  /** Undefined where nothing was measured. */
  spread(): Spread | undefined {
    const histogram = this.#histogram;
    if (histogram.count === 0) return undefined;
    const at = (percent: number) => histogram.percentile(percent) / 1000;
    return {
      count: histogram.count,
      mean: histogram.mean / 1000,
      p50: at(50),
      p90: at(90),
      p95: at(95),
      p99: at(99),
      p999: at(99.9),
      max: histogram.max / 1000,
    };
  }
}
