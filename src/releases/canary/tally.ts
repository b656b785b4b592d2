import type { ArmEvidence } from '../contracts.ts';
import { rho } from '../statistics/confidence.ts';
import type { ArmReport } from './contracts.ts';
import { Histogram, type HistogramState } from './histogram.ts';

/** Size classes that are followed; what comes beyond is counted without its times. */
const CLASSES_MAX = 64;

export interface TallyState {
  requests: number;
  failed: number;
  tokensIn: number;
  tokensOut: number;
  cost: number;
  times: Record<string, HistogramState>;
  costs: HistogramState;
}

/** All that was seen of one arm. It is for people and for the edges; verdicts go by sessions. */
export class Tally {
  requests = 0;
  failed = 0;
  tokensIn = 0;
  tokensOut = 0;
  cost = 0;
  readonly times = new Map<string, Histogram>();
  readonly costs: Histogram;

  constructor(state?: TallyState) {
    this.costs = new Histogram(state?.costs);
    if (!state) return;
    const { times, costs: _costs, ...counts } = state;
    Object.assign(this, counts);
    for (const [size, buckets] of Object.entries(times)) this.times.set(size, new Histogram(buckets));
  }

  /** Both together; neither is changed. */
  static sum(one: Tally, other: Tally): Tally {
    const sum = new Tally(one.toJSON());
    sum.add(other.toJSON());
    return sum;
  }

  add(arm: ArmEvidence): void {
    this.requests += arm.requests;
    this.failed += arm.failed;
    this.tokensIn += arm.tokensIn;
    this.tokensOut += arm.tokensOut;
    this.cost += arm.cost;
    this.costs.add(arm.costs);
    for (const size in arm.times) {
      let times = this.times.get(size);
      if (!times) {
        if (this.times.size >= CLASSES_MAX) continue;
        this.times.set(size, (times = new Histogram()));
      }
      times.add(arm.times[size]!);
    }
  }

  report(): ArmReport {
    const { requests, failed, tokensIn, tokensOut, cost } = this;
    const seen = [...this.times].filter(([, histogram]) => histogram.count > 0);
    const times = Object.fromEntries(
      seen.map(([size, histogram]) => [
        size,
        {
          count: histogram.count,
          p50: histogram.quantile(0.5),
          p95: histogram.quantile(0.95),
          p99: histogram.quantile(0.99),
          within: Number(Math.min(1, rho(histogram.count)).toPrecision(3)),
        },
      ]),
    );
    return { requests, failed, tokensIn, tokensOut, cost, times };
  }

  toJSON(): TallyState {
    const { requests, failed, tokensIn, tokensOut, cost } = this;
    const times = Object.fromEntries([...this.times].map(([size, histogram]) => [size, histogram.toJSON()]));
    return { requests, failed, tokensIn, tokensOut, cost, times, costs: this.costs.toJSON() };
  }
}
