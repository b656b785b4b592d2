import type { Exchange } from '../exchange.ts';

/** Hears of the answers of copies that went to a backend under release. */
export interface PairSink {
  /** `difference`: how much worse the copy's answer is, from -1 to 1; `by`: what was compared. The request is over by then. */
  pair(release: string, x: Exchange, compared: { difference: number; by: string }): void;
  /** A copy of a request that was not compared, and why. */
  skipped(release: string, x: Exchange, cause: string): void;
}

/** Why a copy's answer was not compared; what reads the answers adds causes of its own. */
export type SkipCause =
  /** It would have acted on something; or it belongs to what one server remembers, or to one version. */
  | 'effects'
  | 'stateful'
  | 'version'
  /** It got no place, or the worker left. */
  | 'dropped'
  | 'failed'
  /** The caller left, got a rougher answer or none, or had its answer of the same backend. */
  | 'caller-left'
  | 'degraded'
  | 'caller-failed'
  | 'same-backend'
  /** One of both answers was longer than is held, or there was no room to hold it, or it was no plain text. */
  | 'too-long'
  | 'no-room'
  | 'encoded'
  /** Too many wait to be compared. */
  | 'busy';
