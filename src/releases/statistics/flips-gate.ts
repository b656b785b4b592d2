import { logMean } from './log-mean.ts';

/** Shares of the bound that the certifying bets expect the rate of flips to be; 0 is the quickest, and dies with the first flip. */
const EXPECTED_SHARES = [0, 0.1, 0.25, 0.5, 0.75];
/** The most that one prompt may cost a rejecting bet, as shares of all that it has. */
const STAKES = [0.25, 0.5, 0.75, 1];

/**
 * Whether the rate of decisions that differ stays under `floor + max`, where the floor is what a backend differs from itself
 * by. Of each prompt d = (differs from the other) - (differs from itself), -1, 0 or 1.
 *
 * Certifying: H0: mean of d >= max. E = mean over q of the product of 1 - lambda (d - max), lambda = (1 - q / max) / (1 - max).
 * Without flips against itself that is (q/max)^x ((1-q)/(1-max))^(1-x), gate C2 of the reference; with them the bets of
 * Waudby-Smith and Ramdas, arXiv 2010.09686. Rejecting: H0: mean of d <= max / 2, the same bets with the other sign. Both are
 * e-processes: by Ville's inequality either is ever 1/alpha or more with a probability of at most alpha, however often it is
 * looked at. A rate between half the bound and the bound ends as neither unless there are thousands of prompts.
 */
export class FlipsGate {
  readonly max: number;
  /** What is enough: 1/alpha. */
  readonly enough: number;
  prompts = 0;
  flips = 0;
  floorFlips = 0;
  #verdict: 'certified' | 'rejected' | undefined;
  readonly #certifying: number[];
  readonly #rejecting: number[];
  readonly #logs = { certifying: EXPECTED_SHARES.map(() => 0), rejecting: STAKES.map(() => 0) };

  /** `max`: above 0 and below 0.5. `alpha`: the probability of a false certificate, and of a false rejection. */
  constructor(max: number, alpha = 0.05) {
    if (!(max > 0 && max < 0.5 && alpha > 0 && alpha < 1))
      throw new RangeError(`no gate at ${max}, ${alpha}`);
    this.max = max;
    this.enough = 1 / alpha;
    this.#certifying = EXPECTED_SHARES.map((share) => (1 - share) / (1 - max));
    this.#rejecting = STAKES.map((stake) => stake / (1 + max / 2));
  }

  observe(flip: boolean, floorFlip = false): void {
    this.prompts++;
    if (flip) this.flips++;
    if (floorFlip) this.floorFlips++;
    const difference = Number(flip) - Number(floorFlip);
    const { certifying, rejecting } = this.#logs;
    this.#certifying.forEach((bet, i) => {
      certifying[i]! += Math.log(Math.max(0, 1 - bet * (difference - this.max)));
    });
    this.#rejecting.forEach((bet, i) => {
      rejecting[i]! += Math.log(Math.max(0, 1 + bet * (difference - this.max / 2)));
    });
    if (this.certifies >= this.enough) this.#verdict ??= 'certified';
    if (this.rejects >= this.enough) this.#verdict ??= 'rejected';
  }

  /** Evidence that the rate is below the bound: an e-value. */
  get certifies(): number {
    return Math.exp(logMean(this.#logs.certifying));
  }

  /** Evidence that the rate is above half the bound: an e-value. */
  get rejects(): number {
    return Math.exp(logMean(this.#logs.rejecting));
  }

  /** What was shown first: it stands, whatever comes after it. */
  get verdict(): 'certified' | 'rejected' | undefined {
    return this.#verdict;
  }
}
