import type { Call } from '../call.ts';
import type { Cost } from '../cost.ts';
import type { Exchange } from '../exchange.ts';
import type { Rate } from './reservation.ts';

/** Where nothing says how long an answer may be, no more than this share of a limit is set aside for it. */
const GUESS_SHARE_MAX = 0.25;

/** What a request takes of each rate before it is sent. */
export function amountsOf(x: Exchange, call: Call, rates: readonly Rate[]): number[] {
  const amounts: number[] = [];
  for (let i = 0; i < rates.length; i++) {
    const { kind, burst } = rates[i]!.limit;
    if (kind === 'tokens') amounts.push(x.charged === 'pipeline' ? 0 : tokensReserved(call, x.cost, burst));
    else amounts.push(x.charged === 'stage' ? 0 : 1);
  }
  return amounts;
}

/**
 * Tokens that a call may take. What its caller allows is taken at its word, and can be more than there ever is. What is only
 * reckoned is not: it waits at most for a full bucket, and leaves a debt where it turns out to be true.
 */
function tokensReserved(call: Call, { tokensIn, tokensOut }: Cost, burst: number): number {
  if (call.protocol === 'oip') return 0;
  if (call.kind === 'embeddings') return Math.min(tokensIn, burst);
  const { outputTokensMax, choices } = call.request;
  if (outputTokensMax === undefined) {
    return Math.min(tokensIn + Math.min(tokensOut, burst * GUESS_SHARE_MAX), burst);
  }
  const allowed = outputTokensMax * choices;
  return allowed > burst ? allowed : Math.min(tokensIn + allowed, burst);
}

/**
 * Tokens that a request has used; undefined where it used none. The engine's own count where it gave one, else deltas of the
 * answer and the prompt as it was reckoned. An attempt that failed before anything of its answer reached the caller used
 * none; a caller that leaves has used its prompt. An answer that several share is used by each of them.
 */
export function tokensUsed(x: Exchange): { in: number; out: number } | undefined {
  if (x.call?.protocol !== 'openai' || x.degraded === 'answer') return undefined;
  const answered = x.outcome === 'ok' || x.outcome === 'degraded' || x.committed;
  if (!answered && x.outcome !== 'aborted') return undefined;
  const counted = x.tokensIn !== undefined || x.tokensOut !== undefined;
  if (!counted && !x.committed && x.attempts === 0) return undefined;
  const tokensIn = x.tokensIn ?? x.cost.tokensIn;
  if (counted) return { in: tokensIn, out: x.tokensOut ?? 0 };
  return { in: tokensIn, out: answered ? x.cost.tokensOut : 0 };
}

/** Whether it counts as a request: one that was never sent, nor answered otherwise, does not. */
export function counts(x: Exchange): boolean {
  return x.attempts > 0 || x.outcome === 'ok' || x.outcome === 'degraded';
}
