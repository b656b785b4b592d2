/**
 * One answer as a controller of an endpoint's limit sees it. The object is used again for the next one: nothing of it is
 * to be kept.
 */
export interface LimitSample {
  /** When it was sent, monotonic milliseconds. */
  sentAt: number;
  /** Judged by its whole time; otherwise by its first token. */
  whole: boolean;
  /** Its latency over what requests of its size take at least; 1 or a little less where nothing is in the way. */
  ratio: number;
  /** How much longer it took than its size takes at least, and for how long a place is held: both in one unit. */
  excess: number;
  held: number;
  /** Its latency over what it may take: above 1 it came too late. */
  share: number;
  /** What it may take over the time for which a place is held. */
  allowedPart: number;
  /** Units in flight when it was sent, itself included; and units of a usual request. */
  inFlight: number;
  unit: number;
  /** The limit was binding when it was sent. */
  saturated: boolean;
}

/**
 * Decides how many units (tokens of generative traffic, else requests) one endpoint may have in flight. It owns its state
 * and does no I/O; the hard cap is kept elsewhere.
 */
export interface LimitController {
  readonly name: string;
  /** Raised whenever the same samples could give another limit. */
  readonly version: number;
  /** Units; the request that goes beyond it is the last one let in. */
  readonly limit: number;
  /** Still growing fast, since nothing has been found that stops it. */
  readonly starting: boolean;
  observe(sample: LimitSample, now: number): void;
  /** The engine refused one for want of room, or says that a `part` of what is there waits. `inFlight`: units there now. */
  dropped(inFlight: number, part: number, now: number): void;
  /**
   * The engine says that hardly anything waits at it though `units` are there: no fewer are too many. `idle`: how clearly it
   * says so, from 0 to 1 where nothing waits at all.
   */
  free?(units: number, idle: number, now: number): void;
  /** What was learned may be wrong now: grow again from `units`. */
  restart(units: number): void;
}
