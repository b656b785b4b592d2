import type { RateLimit } from '../../config/rate-limits.ts';
import type { Failure } from '../../kernel/errors.ts';
import { TOKEN_BUCKET } from '../../policies/token-bucket/index.ts';
import type { Call } from '../call.ts';
import type { Exchange } from '../exchange.ts';
import { named } from '../note-decision.ts';
import type { Path } from '../path.ts';
import { amountsOf, counts, tokensUsed } from './charge.ts';
import { addRateLimits } from './headers.ts';
import { type QuotaLine, type QuotaRefusal, Reservation } from './reservation.ts';

/** OpenAI's clients wait for no `retry-after` beyond this, and come back within seconds instead. */
const SDK_WAIT_SECONDS_MAX = 60;
/** Seconds after which a slot is worth another try; nobody knows when one comes free. */
const SLOT_SECONDS = 1;

/**
 * Takes what the request may use of its tenant's quota, then lets it go on; refuses it where there is too little. Everything
 * comes back through its scope: what it did not use at once, and the rest as time goes by.
 */
export function reserveQuota(path: Path, x: Exchange, call: Call, line: QuotaLine): void {
  const { clock, world } = path.deps;
  const { quotas } = world;
  if (x.charged === 'nothing') {
    path.begin(x, call);
    return;
  }
  // A stage has the slot of its pipeline, which must never wait for itself.
  const taken = x.charged === 'stage' ? { rates: line.rates, slots: [] } : line;
  const reservation = new Reservation(taken, amountsOf(x, call, line.rates));
  x.quota = reservation;
  x.scope.add(() => {
    settleQuota(path, x, reservation);
    quotas.release(reservation);
  });
  const since = clock.mono();
  let waits = false;
  quotas.reserve(reservation, (refusal) => {
    if (waits) x.waitedMs += clock.mono() - since;
    if (refusal) {
      path.refuse(x, failureOf(path, x, refusal));
      return;
    }
    path.begin(x, call);
  });
  if (reservation.done === undefined || x.over) return;
  waits = true;
  path.watchTime(x);
}

/** Adds what is left of its limits to the head of an answer; one that has ended is settled first. */
export function addQuotaHeaders(path: Path, x: Exchange, headers: string[]): void {
  const reservation = x.quota!;
  if (x.outcome !== undefined) settleQuota(path, x, reservation);
  addRateLimits(reservation.line.rates, path.deps.clock.mono(), headers);
}

function settleQuota(path: Path, x: Exchange, reservation: Reservation): void {
  if (!reservation.taken) return;
  const used = tokensUsed(x);
  const tokens = used ? used.in + used.out : 0;
  path.deps.world.quotas.settle(reservation, tokens, x.charged === 'stage' || !counts(x) ? 0 : 1);
}

function failureOf(path: Path, x: Exchange, refusal: QuotaRefusal): Failure {
  const { limit } = refusal;
  const whose = `tenant '${limit.tenant}'${limit.route === undefined ? '' : ` on '${limit.route}'`}`;
  if (refusal.by === 'slots') {
    const { max } = refusal.limit;
    path.step(x, 'admit', 'quota-concurrency', { max }, limit.setting);
    return {
      code: 'quota_exceeded',
      message: `The limit of ${whose} is ${max} requests at once, and so many are running.`,
      phase: 'before-queue',
      retryAfterSeconds: SLOT_SECONDS,
    };
  }
  path.step(x, 'admit', refusal.code, refusal.figures, limit.setting);
  if (refusal.input) Object.assign(x.steps.at(-1)!, { policy: named(TOKEN_BUCKET), input: refusal.input });
  return rateFailure(refusal, whose);
}

function rateFailure(refusal: Extract<QuotaRefusal, { by: 'rate' }>, whose: string): Failure {
  const { limit, waitMs, figures } = refusal;
  const [asked, there] = [Number(figures['asked']), Math.max(0, Math.floor(Number(figures['there'])))];
  const rate = `The limit of ${whose} is ${rateInWords(limit)}`;
  if (waitMs === Number.POSITIVE_INFINITY) {
    const atOnce = `${limit.burst} at once, and this asks for ${asked}`;
    return {
      code: 'quota_exceeded',
      message: `${rate}: it never allows more than ${atOnce}. Trying again does not help.`,
      phase: 'before-queue',
      // Nothing is promised of it: it is when a request for all that there can be might be granted.
      retryAfterSeconds: limit.perSeconds,
      shouldRetry: false,
    };
  }
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return {
    code: 'quota_exceeded',
    message: `${rate}: ${asked} asked for, ${there} left. Enough will be there in ${seconds} s.`,
    phase: 'before-queue',
    retryAfterSeconds: seconds,
    ...(seconds > SDK_WAIT_SECONDS_MAX ? { shouldRetry: false } : {}),
  };
}

const UNITS: Record<number, string> = { 1: 's', 60: 'min', 3600: 'h', 86400: 'd' };

/** As the configuration has it, such as `60000 tokens/min`. */
function rateInWords({ kind, perSecond, perSeconds }: RateLimit): string {
  const amount = Number((perSecond * perSeconds).toFixed(6));
  return `${amount} ${kind}/${UNITS[perSeconds] ?? `${perSeconds}s`}`;
}
