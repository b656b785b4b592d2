import { WindowedLimit } from '../limit-window.ts';

const BACK_OFF = 0.9;

/** Additive increase, multiplicative decrease: one request more while all is well, a tenth less where one is too late. */
export class AimdLimit extends WindowedLimit {
  readonly name = 'aimd';

  protected judge(): void {
    if (this.late > 0) this.set(BACK_OFF * this.requests);
    else if (2 * this.inFlightMax >= this.requests) this.set(this.requests + 1);
  }

  dropped(): void {
    this.set(BACK_OFF * this.requests);
  }
}
