/** Contested time over which the measured rate is a mean: 2 s, or the time of so many departures where that is longer. */
const WINDOW_MS_MIN = 2_000;
const WINDOW_MS_MAX = 120_000;
const WINDOW_DEPARTURES = 8;
/** Share of the window that must have been contested before what was measured stands alone. */
const MEASURED_SHARE = 0.25;
/** Weight of one more attempt in what a place does in general. */
const PLACE_WEIGHT = 0.1;

/** What stands before a newcomer, in tokens of work. */
export interface Ahead {
  /** Place of its priority, 0 the highest. */
  rank: number;
  /** Of priorities above its own; and of its own, as the order between tenants has it. */
  above: number;
  own: number;
  /** Places that are taken now at endpoints that can be used. */
  places: number;
  /** Tokens of what runs there; the mean of what ran before stands in where it is not said. */
  running?: number;
  /** Share of contested work that each priority is sure of, and whether anybody waits at it. */
  floors: readonly number[];
  waits: (rank: number) => boolean;
}

/**
 * How fast a backend works off what waits for it. While requests wait, work that is finished is counted against the time
 * that passes: no model of the engine, and an engine that stops is seen to stop. Before enough has been seen so, the mean
 * work of a place over time, times the places that are taken, stands in (Little's law).
 */
export class DrainRate {
  /** Work finished and milliseconds gone by while requests waited; both fade. */
  #work = 0;
  #contestedMs = 0;
  #contested = false;
  /** Work finished by priority and time, waiting or not; they fade too. */
  readonly #byRank: number[];
  #allMs = 0;
  #at = 0;
  #windowMs = WINDOW_MS_MIN;
  /** Means of one attempt: its work, and how long it held its place. */
  #meanWork = 0;
  #meanHeldMs = 0;
  #attempts = 0;

  constructor(ranks: number) {
    this.#byRank = new Array(ranks).fill(0);
  }

  /** Requests begin to wait for a place, or none waits any more. */
  contested(now: number, on: boolean): void {
    this.#fade(now);
    this.#contested = on;
  }

  /** Nobody waits for a place that might come free: what passes until `contested` says otherwise is not counted. */
  pause(): void {
    this.#contested = false;
  }

  /** An attempt is over and its place is free again, however it ended. */
  finished(rank: number, work: number, heldMs: number, now: number): void {
    this.#fade(now);
    if (this.#contested) this.#work += work;
    this.#byRank[rank]! += work;
    const weight = Math.max(1 / ++this.#attempts, PLACE_WEIGHT);
    this.#meanWork += weight * (work - this.#meanWork);
    this.#meanHeldMs += weight * (heldMs - this.#meanHeldMs);
  }

  /**
   * Tokens of work that are finished in a millisecond while `places` are taken by `running` tokens; undefined where nothing
   * is known. Where what runs is larger than what ran before, the first of it may not be finished for a good while, which
   * is no sign of an engine that stands still.
   */
  tokensPerMs(places: number, now: number, running = 0): number | undefined {
    if (this.#attempts === 0) return undefined;
    this.#fade(now);
    const byPlaces = (places * this.#meanWork) / Math.max(0.01, this.#meanHeldMs);
    const larger = Math.max(1, running / Math.max(1, places * this.#meanWork));
    const departureMs = (this.#meanHeldMs * larger) / Math.max(1, places);
    const windowMs = Math.min(WINDOW_MS_MAX, Math.max(WINDOW_MS_MIN, WINDOW_DEPARTURES * departureMs));
    this.#windowMs = windowMs;
    const enoughMs = windowMs * MEASURED_SHARE;
    const lackingMs = Math.max(0, enoughMs - this.#contestedMs);
    return (this.#work + byPlaces * lackingMs) / Math.max(enoughMs, this.#contestedMs);
  }

  /** How long a newcomer waits for its place; 0 where nothing is known. */
  waitMs({ rank, above, own, places, running, floors, waits }: Ahead, now: number): number {
    const rate = this.tokensPerMs(places, now, running);
    if (rate === undefined) return 0;
    let below = 0;
    for (let lower = rank + 1; lower < floors.length; lower++) if (waits(lower)) below += floors[lower]!;
    let overtaking = 0;
    for (let higher = 0; higher < rank; higher++) overtaking += this.#byRank[higher]!;
    // What comes in above goes before it too, as it has lately.
    const left = rate * (1 - below) - overtaking / Math.max(this.#allMs, WINDOW_MS_MIN * MEASURED_SHARE);
    // One more place has to come free for the newcomer itself.
    const mine = own + this.#meanWork;
    const byOrder = left <= 0 ? Number.POSITIVE_INFINITY : (above + mine) / left;
    return Math.min(byOrder, mine / (rate * floors[rank]!));
  }

  #fade(now: number): void {
    const passedMs = now - this.#at;
    if (passedMs <= 0) return;
    this.#at = now;
    const kept = Math.exp(-passedMs / this.#windowMs);
    const gone = this.#windowMs * (1 - kept);
    this.#work *= kept;
    this.#contestedMs = this.#contestedMs * kept + (this.#contested ? gone : 0);
    this.#allMs = this.#allMs * kept + gone;
    for (let rank = 0; rank < this.#byRank.length; rank++) this.#byRank[rank]! *= kept;
  }
}
