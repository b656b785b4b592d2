import { MARKS } from '../../events/contracts.ts';
import type { ErrorCode } from '../../kernel/errors.ts';
import type { AttemptFailure } from '../dispatch/outcome.ts';
import type { Exchange } from '../exchange.ts';
import { isAtTargets } from '../ladder.ts';
import { tokensUsed } from '../quota/charge.ts';

/** What is not for want of a backend, whichever arm it is. */
const NOBODYS_FAULT: ReadonlySet<ErrorCode> = new Set(['quota_exceeded', 'draining']);
/** Requests of its priority are held at a rung, whichever arm they belong to. */
const HELD = 'rung-held';

/** To be called when an attempt gave no answer: what is the backend's fault is its arm's failure, whoever answers in the end. */
export function noteFailedAttempt(x: Exchange, failed: AttemptFailure): void {
  if (failed.kept || failed.stale || !isAtTargets(x)) return;
  x.armed!.failed = true;
}

/**
 * The marks of how a request ended, as far as its arm is concerned: 0 where it was answered, or its caller left. Undefined where
 * it says nothing of the arm, as it was turned away before it came to that, or was not to count whatever its arm. What hangs
 * on the arm always counts: how many sessions each arm has would tell otherwise of a wrong division.
 */
export function judge(x: Exchange): number | undefined {
  const armed = x.armed!;
  if (!armed.counts) return undefined;
  if (armed.failed) return MARKS.failed;
  switch (x.outcome) {
    case 'ok':
      return 0;
    case 'degraded':
      return x.shedFor === HELD ? 0 : MARKS.failed;
    case 'aborted':
      return armed.planned ? 0 : undefined;
    case 'invalid':
      return x.attempts > 0 ? MARKS.refused : undefined;
    default:
      if (!armed.planned) return undefined;
      if (!NOBODYS_FAULT.has(x.failure!.code)) return MARKS.failed;
      return x.attempts > 0 ? 0 : undefined;
  }
}

/** Milliseconds that it took at least, where its caller left before there was anything; undefined elsewhere. */
export function gaveUpAfter(x: Exchange, now: number): number | undefined {
  return x.outcome === 'aborted' && !x.committed ? now - x.startedAt : undefined;
}

/** Milliseconds to what its caller waited for; undefined where an engine gave no full answer to it. */
export function timeOf(x: Exchange, now: number): number | undefined {
  if (!isFull(x)) return undefined;
  const at = x.call!.stream ? x.firstContentAt : x.outcome === 'ok' ? now : undefined;
  return at === undefined ? undefined : Math.max(0, at - x.startedAt);
}

/** By price where all backends of the route have one, else tokens of the answer; undefined where it is not known. */
export function costOf(x: Exchange): number | undefined {
  const used = isFull(x) && x.outcome === 'ok' ? tokensUsed(x) : undefined;
  if (!used) return undefined;
  if (!x.armed!.release.priced) return used.out;
  const price = x.backend?.settings.price;
  return price && (used.in * price.in + used.out * price.out) / 1e6;
}

/** An answer that was kept, or is of a rung, says nothing of what its arm takes. */
function isFull({ outcome, committed, degraded, attempts }: Exchange): boolean {
  return degraded === undefined && attempts > 0 && (outcome === 'ok' || committed);
}
