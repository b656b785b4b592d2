import { isOpenaiError } from '../protocols/openai/errors.ts';
import { passedBack } from './dispatch/headers.ts';
import type { AttemptFailure } from './dispatch/outcome.ts';
import type { Exchange } from './exchange.ts';
import { descend, isPinned, isSequence } from './ladder.ts';
import type { Path } from './path.ts';

/**
 * What follows an attempt that gave no answer, before the commit point: the same endpoint on a fresh connection, the next
 * endpoint, the next rung, or the error. One owner, one budget: nothing else in the path retries.
 */
export function recover(path: Path, x: Exchange, failed: AttemptFailure): void {
  if (x.over) return;
  const attempt = x.attempt!;
  const { clock } = path.deps;
  x.failure = failed.failure;
  path.step(x, 'attempt', failed.code, {
    backend: attempt.backend.name,
    endpoint: attempt.endpoint.address,
    attempt: x.attempts,
    tookMs: Math.round(clock.mono() - attempt.startedAt),
    ...(failed.coolMs === undefined ? {} : { coolMs: failed.coolMs }),
  });
  if (failed.kept) {
    answerKept(path, x, failed.kept);
    return;
  }
  if (clock.mono() >= x.deadlineAt || isSequence(x)) {
    descend(path, x);
    return;
  }
  if (failed.stale) {
    count(path, x, failed.code);
    x.attempts--; // it was never read, and costs nothing
    x.attemptsOfRung--;
    path.repeat(x, attempt.backend, attempt.endpoint);
  } else if (failed.unsent) {
    if (isPinned(x)) {
      descend(path, x);
      return;
    }
    count(path, x, failed.code);
    x.attempts--;
    x.attemptsOfRung--;
    path.plan(x, false);
  } else if (failed.retryable && !isPinned(x) && mayRetry(path, x, attempt.trial)) {
    count(path, x, failed.code);
    path.plan(x, true);
  } else descend(path, x);
}

function mayRetry(path: Path, x: Exchange, trial: boolean): boolean {
  const { attempts, budget } = x.route!.settings.retry;
  const allowed = x.rung < 0 ? attempts : 1;
  if (x.attemptsOfRung >= allowed) return false;
  if (trial) return true; // the endpoint was being tried out: that costs no budget
  const { choice, reason } = x.route!.retries.decide({ budget }, path.deps.clock.mono());
  path.step(x, 'plan', reason.code, reason.figures, `routes.${x.route!.name}.retry.budget`);
  return choice;
}

function count(path: Path, x: Exchange, reason: string): void {
  path.deps.metrics.retries.of(x.attempt!.backend.name, reason).add();
}

/** The engine says what is wrong with the request: its status and reason go to the caller. */
function answerKept(path: Path, x: Exchange, kept: NonNullable<AttemptFailure['kept']>): void {
  const readable = x.call!.protocol === 'oip' ? isOipError(kept.body) : isOpenaiError(kept.body);
  if (!readable) {
    path.refuse(x, x.failure!);
    return;
  }
  x.status = kept.status;
  x.outcome = 'invalid';
  path.step(x, 'answer', 'engine-refused', { status: kept.status });
  const headers = passedBack(kept.headers);
  headers.push('x-should-retry', 'false');
  path.addHeaders(x, headers);
  x.caller.respond(kept.status, headers, kept.body);
  path.finish(x);
}

function isOipError(body: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof (value as { error?: unknown } | null)?.error === 'string';
  } catch {
    return false; // not JSON: it is told in the protocol's own form
  }
}
