import { WindowedLimit } from '../limit-window.ts';

/** Vegas of Netflix's concurrency-limits: keeps a short queue, reckoned from the latency over its floor. */
export class VegasLimit extends WindowedLimit {
  readonly name = 'vegas';

  protected judge(ratio: number): void {
    const limit = this.requests;
    const step = stepOf(limit);
    if (this.late > 0) this.set(limit - step);
    else if (2 * this.inFlightMax >= limit) {
      const queue = Math.ceil(limit * (1 - 1 / Math.max(1, ratio)));
      if (queue <= step) this.set(limit + 6 * step);
      else if (queue < 3 * step) this.set(limit + step);
      else if (queue > 6 * step) this.set(limit - step);
    }
  }

  dropped(): void {
    this.set(this.requests - stepOf(this.requests));
  }
}

const stepOf = (limit: number) => Math.max(1, Math.floor(Math.log10(limit)));
