import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

/** The longest pause before the first repetition, doubling with each, and the longest of all; milliseconds. */
const PAUSE_MS_FIRST = 50;
const PAUSE_MS_MAX = 1_000;

export interface RetryTimingInput {
  /** Whether there is an endpoint that the request has not tried. */
  another: boolean;
  /** Attempts that were made so far. */
  attempts: number;
  /** What is left of the deadline, milliseconds. */
  leftMs: number;
  /** How long such an answer usually takes; undefined where it is not known. */
  usualMs: number | undefined;
}

/**
 * When another attempt is made: at once where another endpoint can be asked, after a pause where one that has just failed is
 * asked again; never (undefined) where it could not be done in what is left of the deadline. Milliseconds.
 */
export const retryTiming: Policy<RetryTimingInput, number | undefined> = {
  name: 'retry-timing',
  version: 1,
  decide(input: RetryTimingInput, _now: number, random: Random): Decision<number | undefined> {
    const { another, attempts, leftMs, usualMs } = input;
    const pauseMs = another ? 0 : random.next() * longest(attempts);
    const figures = {
      pauseMs: Math.round(pauseMs),
      leftMs: Math.round(leftMs),
      ...(usualMs === undefined ? {} : { usualMs: Math.round(usualMs) }),
    };
    if (pauseMs + (usualMs ?? 0) >= leftMs)
      return { choice: undefined, reason: { code: 'retry-too-late', figures } };
    return { choice: pauseMs, reason: { code: another ? 'retry-at-once' : 'retry-after-pause', figures } };
  },
};

function longest(attempts: number): number {
  return Math.min(PAUSE_MS_MAX, PAUSE_MS_FIRST * 2 ** Math.max(0, attempts - 1));
}
