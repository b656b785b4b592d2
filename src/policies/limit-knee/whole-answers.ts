import { Side, spreadOf, waitsOf } from './side.ts';

/** Of what is added, the share that only waits from which more is not worth it. */
const WAITS_MAX = 0.85;
/**
 * Standard errors by which a figure has to differ from the bound to be acted on at once. What is not clear is added up over
 * so many pairs of epochs, and then acted on as it is.
 */
const ERRORS = 2;
const PAIRS_MAX = 3;
/**
 * The limit swings by this share about its base, so that what more would bring can be seen: more where answers differ more,
 * in parts of their spread.
 */
const SWING_MIN = 0.04;
const SWING_MAX = 0.2;
const SWING_OF_SPREAD = 0.7;
/** The first step after a change of direction, by how much the next in the same direction is longer, and the longest. */
const STEP = 0.06;
const STEP_GROWTH = 1.6;
const UP_MAX = 0.5;
const DOWN_MAX = 0.15;

/**
 * Moves the limit by the time of whole answers, which grows with the batch long before anything waits: the limit swings
 * about its base, and where nearly all of what is added only waits there is nothing more to be had.
 */
export class WholeAnswers {
  /** How far the coming epoch is above (or below) the base. */
  swing = 0;
  readonly #lower = new Side();
  readonly #upper = new Side();
  #size = SWING_MIN;
  #pairs = 0;
  #step = STEP;
  #rising = true;

  /** By how much it swings. */
  get size(): number {
    return this.#size;
  }

  /** The next base. */
  next(base: number, epoch: Side): number {
    if (this.swing > 0) {
      this.#upper.addAll(epoch);
      this.swing = -this.#size;
      return base;
    }
    this.#lower.addAll(epoch);
    if (this.#upper.count === 0) {
      this.swing = this.#size;
      return base;
    }
    // Below, above and below again: what they are measured by may drift meanwhile, and is the same for both sides so.
    this.#pairs++;
    const times = this.#judge();
    if (this.#upper.count > 0) this.swing = this.#size;
    return base * times;
  }

  /** It was not let grow. */
  held(): void {
    this.#step = STEP;
  }

  forget(): void {
    this.#step = STEP;
    this.#begin();
  }

  #judge(): number {
    const [lower, upper] = [this.#lower, this.#upper];
    const spread = spreadOf(lower, upper);
    const differ = Math.sqrt((lower.error2 * lower.count + upper.error2 * upper.count) / 2) / upper.held;
    this.#size = Math.max(SWING_MIN, Math.min(SWING_MAX, SWING_OF_SPREAD * differ));
    if (spread > SWING_MIN) {
      const waits = waitsOf(lower, upper);
      const error = (Math.sqrt(lower.error2 + upper.error2) / upper.held / spread) * ERRORS;
      if (Math.abs(waits - WAITS_MAX) > error) return this.#move(waits < WAITS_MAX);
      if (this.#pairs >= PAIRS_MAX) return this.#lean(waits < WAITS_MAX);
    }
    // The hard cap holds both sides: nothing is to be learned.
    if (this.#pairs >= PAIRS_MAX) this.#begin();
    return 1;
  }

  #move(up: boolean): number {
    this.#step = up === this.#rising ? Math.min(this.#step * STEP_GROWTH, up ? UP_MAX : DOWN_MAX) : STEP;
    this.#rising = up;
    this.#begin();
    return up ? 1 + this.#step : 1 - this.#step;
  }

  /** It is not clear: as it seems, but half a step only. */
  #lean(up: boolean): number {
    this.#step = STEP;
    this.#begin();
    return up ? 1 + STEP / 2 : 1 - STEP / 2;
  }

  #begin(): void {
    this.#lower.clear();
    this.#upper.clear();
    this.#pairs = 0;
    this.swing = -this.#size;
  }
}
