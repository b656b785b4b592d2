import { weightOf } from '../cost.ts';
import type { Exchange } from '../exchange.ts';
import { isAtTargets, isPinned, isSequence } from '../ladder.ts';
import type { Path } from '../path.ts';
import { plan } from '../plan.ts';
import type { Attempt } from './attempt.ts';
import { fittedFor, isFitted } from './fitting.ts';
import type { AttemptFailure } from './outcome.ts';
import { prepare } from './send.ts';

/** How a hedge ended: `withheld` was wished for but not sent, `abandoned` ended with the request before either answered. */
type HedgeOutcome = 'won' | 'lost' | 'failed' | 'abandoned' | 'withheld';

/**
 * The second attempt of a request whose first is slow: sent after a while to another endpoint, beside the first. Before
 * the commit point the exchange's `attempt` is the first while it runs; whichever answers first becomes it, and the other is
 * cancelled at once. There is one hedge for a request at most, and nothing is retried while either runs.
 */
export class Hedge {
  readonly #path: Path;
  readonly #x: Exchange;
  readonly #first: Attempt;
  readonly #afterMs: number;
  #state: 'armed' | 'racing' | 'alone' | 'over' = 'armed';
  #second: Attempt | undefined;

  constructor(path: Path, x: Exchange, first: Attempt, afterMs: number) {
    this.#path = path;
    this.#x = x;
    this.#first = first;
    this.#afterMs = afterMs;
  }

  /** Monotonic moment at which it must be looked at again; the first attempt's own moments are not among them. */
  get dueAt(): number {
    if (this.#state === 'armed') return this.#first.startedAt + this.#afterMs;
    return this.#state === 'racing' ? this.#second!.dueAt : Number.POSITIVE_INFINITY;
  }

  checkTime(now: number): void {
    if (this.#state === 'racing') this.#second!.checkTime(now);
    else if (this.#state === 'armed' && now >= this.dueAt) this.#wish(now);
  }

  /** An attempt has an answer: it is the one, and the other ends. Gives back when the wait for this answer began. */
  answered(winner: Attempt): number {
    const racing = this.#state === 'racing';
    if (this.#state === 'armed') this.#state = 'over';
    if (!racing) {
      if (this.#state === 'alone') this.#end('won');
      return winner.startedAt;
    }
    const won = winner === this.#second;
    const loser = won ? this.#first : this.#second!;
    this.#takeOver(winner);
    this.#end(won ? 'won' : 'lost');
    const { clock } = this.#path.deps;
    this.#path.step(this.#x, 'attempt', won ? 'hedge-won' : 'hedge-lost', {
      backend: loser.backend.name,
      endpoint: loser.endpoint.address,
      tookMs: Math.round(clock.mono() - loser.startedAt),
      tokens: loser.tokens,
    });
    this.#forgetOverlap();
    if (won && this.#x.call!.stream) noteOutrun(loser, clock.mono());
    loser.cancel();
    return this.#first.startedAt;
  }

  /** An attempt gave no answer. True when the other goes on: it is the only one from now on, and nothing is to be done. */
  outlives(failed: Attempt, { unsent, stale }: AttemptFailure): boolean {
    const x = this.#x;
    if (this.#state !== 'racing') {
      if (this.#state === 'alone') this.#end('failed');
      this.#state = 'over';
      return false;
    }
    this.#forgetOverlap();
    const reachedNobody = unsent || stale;
    if (reachedNobody) {
      x.attempts--;
      x.attemptsOfRung--;
    }
    if (failed === this.#second) {
      if (reachedNobody) x.route!.hedges?.giveBack();
      this.#end('failed');
    } else {
      this.#takeOver(this.#second!);
      this.#state = 'alone';
    }
    this.#path.watchTime(x);
    return true;
  }

  /** The request is over, or its time is. */
  cancel(): void {
    if (this.#state === 'racing') this.#forgetOverlap();
    if (this.#state === 'racing' || this.#state === 'alone') this.#end('abandoned');
    this.#state = 'over';
    this.#first.cancel();
    this.#second?.cancel();
  }

  #wish(now: number): void {
    const x = this.#x;
    const route = x.route!;
    this.#state = 'over';
    const { hedge } = route.settings;
    if (hedge === undefined || route.hedges === undefined) return; // a newer configuration has no hedge
    const afterMs = Math.round(this.#afterMs);
    const decision = route.hedges.decide({ budget: hedge.budget });
    const { code, figures } = decision.reason;
    this.#path.step(x, 'plan', code, { afterMs, ...figures }, `routes.${route.name}.hedge`);
    if (!decision.choice) {
      this.#count('withheld');
      return;
    }
    // Nobody who waits for a place loses it to a second attempt.
    let found = x.targets.some(({ backend }) => backend.line.length > 0)
      ? undefined
      : plan(x, this.#path.deps, now, false);
    if (found?.kind === 'go' && isFitted(x) && !fittedFor(x, found.backend)) {
      // What is sent there would have to be made first: the time for a second attempt is now.
      found.endpoint.give(weightOf(x.cost));
      this.#path.deps.world.freed(found.endpoint);
      found = undefined;
    }
    if (found?.kind !== 'go') {
      route.hedges.giveBack();
      this.#path.step(x, 'plan', 'hedge-without-place', {}, `routes.${route.name}.hedge`);
      this.#count('withheld');
      return;
    }
    this.#state = 'racing';
    this.#second = prepare(this.#path, x, found.backend, found.endpoint, false);
    this.#second.start();
  }

  #takeOver(attempt: Attempt): void {
    this.#x.attempt = attempt;
    this.#x.backend = attempt.backend;
  }

  /** While both ran, the time of both was counted as time spent upstream: once is right. */
  #forgetOverlap(): void {
    this.#x.upstreamMs -= this.#path.deps.clock.mono() - this.#second!.startedAt;
  }

  #end(outcome: HedgeOutcome): void {
    this.#state = 'over';
    this.#count(outcome);
  }

  #count(outcome: HedgeOutcome): void {
    this.#path.deps.metrics.hedges.of(this.#x.route!.name, outcome).add();
  }
}

/** It has taken so long at least, which those who choose endpoints should know; how long it would have taken nobody will. */
function noteOutrun({ endpoint, startedAt }: Attempt, now: number): void {
  const { firstToken } = endpoint.speed;
  if (firstToken.value === undefined || firstToken.value < now - startedAt)
    firstToken.observe(now - startedAt, now);
}

/** Arms a hedge for an attempt that is about to start, where the route has them and the request may be asked twice. */
export function armHedge(path: Path, x: Exchange, first: Attempt): void {
  const route = x.route!;
  const { hedge } = route.settings;
  if (hedge === undefined || !isAtTargets(x) || x.attempts !== 1 || !mayHedge(x)) return;
  route.hedges?.observe({ budget: hedge.budget });
  const afterMs =
    hedge.after === 'p95' ? route.times.quantile(x.call!, first.backend.name, 0.95) : hedge.after;
  if (afterMs !== undefined) x.hedge = new Hedge(path, x, first, afterMs);
}

/**
 * Streams, whose first content tells that the engine is at work, and short answers. Not a whole generated answer: its
 * time tells of its length, and a second one costs as much as the first. Nor what only one endpoint may answer.
 */
function mayHedge(x: Exchange): boolean {
  const call = x.call!;
  if (call.protocol === 'oip') return call.kind === 'infer' && !isPinned(x) && !isSequence(x);
  return call.stream || call.kind === 'embeddings';
}
