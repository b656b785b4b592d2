import type { Exchange } from '../exchange.ts';
import type { Attempt } from './attempt.ts';

/** Tells an endpoint what an attempt took that it has answered whole. */
export function tellServed(attempt: Attempt, x: Exchange, now: number): void {
  const call = x.call!;
  const { startedAt, firstContentAt } = attempt;
  attempt.endpoint.served(
    attempt,
    {
      firstTokenMs: x.streaming && firstContentAt !== undefined ? firstContentAt - startedAt : undefined,
      totalMs: now - startedAt,
      tokensIn: x.tokensIn ?? x.cost.tokensIn,
      tokensOut: x.tokensOut ?? x.cost.tokensOut,
      kind: call.protocol === 'oip' ? 'tensors' : call.kind,
    },
    x.caller.body.length,
    x.route!.settings.deadline,
    now,
  );
}
