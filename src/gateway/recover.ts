import { type RetryTimingInput, retryTiming } from '../policies/retry-timing/index.ts';
import { isOpenaiError } from '../protocols/openai/errors.ts';
import type { Attempt } from './dispatch/attempt.ts';
import { passedBack } from './dispatch/headers.ts';
import type { AttemptFailure } from './dispatch/outcome.ts';
import type { Exchange } from './exchange.ts';
import { KeptRandom } from './kept-random.ts';
import { descend, isAtTargets, isPinned, isSequence } from './ladder.ts';
import { noteDecision } from './note-decision.ts';
import type { Path } from './path.ts';
import { noteFailedAttempt } from './release/judge.ts';
import { nextTier, widen } from './tiers.ts';

/**
 * What follows an attempt that gave no answer, before the commit point: the same endpoint on a fresh connection, the next
 * endpoint, the next rung, or the error. One owner, one budget: nothing else in the path retries.
 */
export function recover(path: Path, x: Exchange, attempt: Attempt, failed: AttemptFailure): void {
  if (x.over) return;
  const { clock } = path.deps;
  x.failure = failed.failure;
  path.step(x, 'attempt', failed.code, {
    backend: attempt.backend.name,
    endpoint: attempt.endpoint.address,
    attempt: attempt.number,
    tookMs: Math.round(clock.mono() - attempt.startedAt),
    ...(failed.status === undefined ? {} : { status: failed.status }),
    ...(failed.coolMs === undefined ? {} : { coolMs: failed.coolMs }),
  });
  if (failed.kept) {
    x.attempt = attempt;
    x.backend = attempt.backend;
    answerKept(path, x, failed.kept);
    return;
  }
  if (x.armed) noteFailedAttempt(x, failed);
  if (x.hedge?.outlives(attempt, failed)) return;
  widen(path, x);
  if (clock.mono() >= x.deadlineAt || isSequence(x)) {
    descend(path, x);
    return;
  }
  // Once: a request that kills who reads it looks the same, and is not to go on through every endpoint for nothing.
  if (failed.stale && !x.metStale) {
    x.metStale = true;
    count(path, attempt, failed.code);
    x.attempts--; // it was never read, and costs nothing
    x.attemptsOfRung--;
    path.repeat(x, attempt.backend, attempt.endpoint);
  } else if (failed.unsent) {
    if (isPinned(x)) {
      descend(path, x);
      return;
    }
    count(path, attempt, failed.code);
    x.attempts--;
    x.attemptsOfRung--;
    path.plan(x, false);
  } else {
    const pauseMs = failed.retryable && !isPinned(x) ? mayRetry(path, x, attempt, failed) : undefined;
    if (pauseMs === 'nobody') path.plan(x, true);
    else if (pauseMs === undefined) {
      if (!failed.retryable || isPinned(x) || !nextTier(path, x)) descend(path, x);
    } else {
      count(path, attempt, failed.code);
      retry(path, x, pauseMs);
    }
  }
}

/**
 * Whether another attempt may be made, and after how many milliseconds: within the attempts, the time and the share of
 * traffic. `nobody`: there is no endpoint to ask now, and another way is looked for.
 */
function mayRetry(
  path: Path,
  x: Exchange,
  attempt: Attempt,
  failed: AttemptFailure,
): number | 'nobody' | undefined {
  const { trial } = attempt;
  const { name, settings, retries } = x.route!;
  const allowed = isAtTargets(x) ? settings.retry.attempts : 1;
  if (x.attemptsOfRung >= allowed) return undefined;
  const { clock, random } = path.deps;
  const now = clock.mono();
  const left = whatIsLeft(x, now);
  if (left === 'nobody') return left;
  const input: RetryTimingInput = {
    another: left === 'another',
    attempts: x.attemptsOfRung,
    leftMs: x.deadlineAt - now,
    usualMs: usualMs(x),
  };
  const kept = new KeptRandom(random);
  const timing = retryTiming.decide(input, now, kept);
  if (timing.choice !== 0) {
    const setting = `routes.${name}.deadline`;
    const { reason } = timing;
    noteDecision(x, now, 'plan', { policy: retryTiming, reason, input, draws: kept.draws, setting });
  }
  // Trying an endpoint out costs no budget, nor does work that was lost with its engine: it is no second load on anybody.
  const free = trial || (failed.code === 'connection-lost' && attempt.endpoint.breaker.state !== 'closed');
  if (timing.choice === undefined || free) return timing.choice;
  const { choice, reason } = retries.decide({ budget: settings.retry.budget }, now);
  path.step(x, 'plan', reason.code, reason.figures, `routes.${name}.retry.budget`);
  return choice ? timing.choice : undefined;
}

/** How long such an answer usually takes at the quickest of its targets; undefined while not all of them are known. */
function usualMs(x: Exchange): number | undefined {
  let least = Number.POSITIVE_INFINITY;
  for (const { name } of x.targets) {
    const ms = x.route!.times.quantile(x.call!, name, 0.5);
    if (ms === undefined) return undefined;
    least = Math.min(least, ms);
  }
  return least;
}

/** What may be asked now: an endpoint that it has not tried, one that it has, or none. */
function whatIsLeft(x: Exchange, now: number): 'another' | 'same' | 'nobody' {
  let same = false;
  for (const { backend } of x.targets) {
    for (const endpoint of backend.endpoints) {
      if (endpoint.waitMs(now) > 0 || (x.only !== undefined && endpoint !== x.only)) continue;
      if (!x.tried.includes(endpoint)) return 'another';
      same = true;
    }
  }
  return same ? 'same' : 'nobody';
}

/** Plans anew, at once or after a pause; it holds nothing meanwhile, and its deadline is watched. */
function retry(path: Path, x: Exchange, pauseMs: number): void {
  if (pauseMs === 0) {
    path.plan(x, true);
    return;
  }
  const { timers } = path.deps;
  const timer = timers.set(pauseMs, () => path.plan(x, true));
  x.scope.add(() => timers.clear(timer));
  path.watchTime(x);
}

function count(path: Path, attempt: Attempt, reason: string): void {
  path.deps.metrics.retries.of(attempt.backend.name, reason).add();
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
