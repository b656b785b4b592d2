import type { Exchange } from '../../gateway/contracts.ts';
import type { Later } from './pace.ts';

/**
 * What comes of a line that was asked: an answer, an error that is the line's own, or nothing yet: then it is asked once more,
 * after `afterMs` at the earliest where that was told. `left`: nobody wants it any more.
 */
export type Verdict =
  | { kind: 'answered' | 'refused' | 'left' }
  | { kind: 'later'; why: Later; afterMs: number | undefined; itsOwn: boolean };

/** Errors that would come again however often it is asked. */
const ITS_OWN = new Set([
  'invalid_request',
  'unauthorized',
  'forbidden',
  'unknown_route',
  'not_found',
  'conflict',
  'body_too_large',
]);

export function verdictOf({ outcome, failure, attempts, steps, shedFor }: Exchange): Verdict {
  if (outcome === 'aborted') return { kind: 'left' };
  if (outcome === 'ok' || outcome === 'degraded') return { kind: 'answered' };
  // Its conversation is being written, mostly by another line of its batch: it is asked when that one may be done.
  if (failure?.code === 'conflict' && failure.shouldRetry !== false)
    return { kind: 'later', why: 'held', afterMs: undefined, itsOwn: false };
  // The engine's own word on the request, with its status.
  if (outcome === 'invalid' || !failure || ITS_OWN.has(failure.code)) return { kind: 'refused' };
  const afterMs = failure.retryAfterSeconds === undefined ? undefined : failure.retryAfterSeconds * 1000;
  const later = (why: Later, itsOwn = false): Verdict => ({ kind: 'later', why, afterMs, itsOwn });
  switch (failure.code) {
    case 'quota_exceeded':
      return later(steps.some(({ code }) => code === 'quota-concurrency') ? 'slots' : 'quota');
    case 'overloaded':
      return later(shedFor === undefined ? 'overloaded' : 'crowded');
    case 'draining':
      return later('overloaded');
    default:
      // An engine was asked, and did not answer it. Should it go on answering others, it may be for what the line asks.
      return later('failed', failure.code !== 'backend_unavailable' && attempts > 0);
  }
}
