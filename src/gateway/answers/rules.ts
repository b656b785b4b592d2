import type { RouteSettings } from '../../config/schema/index.ts';

/** Of answers that only the ladder keeps: the longest. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** What a route does with answers beyond giving each to the one who asked. */
export interface AnswerRules {
  /** Kept answers are given in full up to this age, milliseconds; 0: never. */
  ttl: number;
  /** Answers are kept so long, for the ladder as well; 0: not at all. */
  keepMs: number;
  answerBytesMax: number;
  singleFlight: boolean;
  batch: RouteSettings['batch'];
}

/** Undefined for a route that keeps, shares and prepares nothing, so that its requests pay nothing. */
export function answerRules({
  cache,
  ladder,
  singleFlight,
  batch,
  prepare,
}: RouteSettings): AnswerRules | undefined {
  const stale = ladder.map((rung) => ('cached' in rung ? rung.cached.staleMax : 0));
  const ttl = cache?.ttl ?? 0;
  const keepMs = Math.max(ttl, ...stale);
  if (keepMs === 0 && !singleFlight && !batch && !prepare) return undefined;
  return {
    ttl,
    keepMs,
    answerBytesMax: cache?.answerBytesMax ?? ANSWER_BYTES_MAX,
    singleFlight,
    batch,
  };
}
