import type { Step } from '../events/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { boundedAgain, deadlineFit, retryAfterSeconds } from '../policies/deadline-fit/index.ts';
import type { Standing as QueueStanding, Yielding } from '../policies/displacement/index.ts';
import { serviceKind, serviceSize, weightOf } from './cost.ts';
import type { Exchange } from './exchange.ts';
import { displaced, queueFull, wouldMiss } from './failures.ts';
import { descend } from './ladder.ts';
import type { Path } from './path.ts';
import { takePlace } from './plan.ts';
import type { Endpoint } from './state/endpoint.ts';
import { isRoomFor } from './state/room.ts';
import type { Standing, Turn, Waiter, Yielder } from './state/waiting-line.ts';
import type { Backend } from './state/world.ts';
import { nextTier } from './tiers.ts';

type Go = (backend: Backend, endpoint: Endpoint) => void;

/**
 * Lets a request wait for a place at the backend, within its route's queue and its own deadline. `go` is called with the
 * place, taken. Who would miss its deadline, and who finds the queue full of others with no less right to it, is told so
 * at once; where no endpoint is left to wait for, another way is looked for.
 */
export function waitForPlace(path: Path, x: Exchange, backend: Backend, go: Go): void {
  const waiting = new Waiting(path, x, backend, go);
  if (waiting.fits() && waiting.findRoom()) waiting.join();
}

/** One request's waiting, from its arrival to its turn. */
class Waiting implements Waiter, Yielder {
  readonly id: string;
  readonly rank: number;
  readonly tenant: string;
  readonly share: number;
  readonly work: number;
  readonly only: Endpoint | undefined;
  readonly #path: Path;
  readonly #x: Exchange;
  readonly #backend: Backend;
  readonly #go: Go;
  #standing: Standing | undefined;
  #inQueue: QueueStanding<Yielder> | undefined;
  #since = 0;
  /** What becomes of the one that gave it its place in the queue. */
  #onJoined: (() => void) | undefined;
  /** What its wait was predicted to be, behind so many tokens, and its service after that. */
  #waitMs = 0;
  #aheadTokens = 0;
  /** Places that were taken when it came. */
  #places = 0;
  #serviceMs = 0;

  constructor(path: Path, x: Exchange, backend: Backend, go: Go) {
    this.#path = path;
    this.#x = x;
    this.#backend = backend;
    this.#go = go;
    this.id = x.id;
    this.rank = x.rank;
    this.tenant = x.tenant;
    this.share = x.share;
    this.work = weightOf(x.cost);
    this.only = x.only;
  }

  /** Whether its turn would come in time; if not, it goes another way at once. Nobody is turned away while there is room. */
  fits(): boolean {
    const path = this.#path;
    const x = this.#x;
    const { line, endpoints } = this.#backend;
    const now = path.deps.clock.mono();
    if (isRoomFor(this, this.#backend, now)) return true;
    let places = 0;
    let running = 0;
    for (const endpoint of endpoints) {
      if (endpoint.waitMs(now) > 0) continue;
      places += endpoint.inflight;
      running += endpoint.tokensInFlight;
    }
    // It waits for a start, whose time has been judged already, or for a first unit of other workers.
    this.#places = places;
    if (places === 0) return true;
    const ahead = line.ahead(this, places, running);
    this.#waitMs = line.drain.waitMs(ahead, now);
    this.#aheadTokens = Math.round(ahead.above + ahead.own);
    const serviceMs = this.#service(now).safeMs;
    this.#serviceMs = serviceMs;
    const deadlineMs = x.deadlineAt - x.startedAt;
    const input = { leftMs: x.deadlineAt - now, deadlineMs, waitMs: this.#waitMs, serviceMs };
    const { choice, reason } = deadlineFit.decide(input, now, path.deps.random);
    if (choice.fits) return true;
    const figures: Step['figures'] = {
      ...reason.figures,
      waiting: line.length,
      aheadTokens: this.#aheadTokens,
      tokensPerSecond: Math.round((line.drain.tokensPerMs(places, now, running) ?? 0) * 1000),
      places,
    };
    path.step(x, 'wait', reason.code, figures, `routes.${x.route!.name}.deadline`);
    this.#turnAway('would-miss-deadline', wouldMiss(x.route!.name, 'before-queue'), choice.againMs);
    return false;
  }

  /** Whether there is a place for it in its route's queue, if need be that of another, who gives way to it. */
  findRoom(): boolean {
    const path = this.#path;
    const { waiting, settings, name } = this.#x.route!;
    const { world } = path.deps;
    // Each worker has its share of the places in the queue.
    const max = Math.ceil(settings.queue.max / (world.snapshot?.settings.gateway.workers ?? 1));
    if (waiting.count < max) return true;
    const yielding = waiting.decide(this, this.#backend.line.floors, max);
    if (yielding) {
      this.#onJoined = yielding.item.yield(yielding.rule, this, max);
      return true;
    }
    const figures = { waiting: waiting.count, max, waitMs: told(this.#waitMs), places: this.#places };
    path.step(this.#x, 'wait', 'queue-full', figures, `routes.${name}.queue.max`);
    this.#turnAway('queue-full', queueFull(name, waiting.count), this.#waitMs);
    return false;
  }

  join(): void {
    const path = this.#path;
    const x = this.#x;
    const { clock, world } = path.deps;
    this.#since = clock.mono();
    path.step(x, 'wait', 'waits', {
      aheadTokens: this.#aheadTokens,
      // Where nothing is known yet, no time at all would be told.
      ...(this.#serviceMs > 0 ? { waitMs: told(this.#waitMs), serviceMs: Math.round(this.#serviceMs) } : {}),
    });
    this.#inQueue = x.route!.waiting.add(this, this);
    const { line } = this.#backend;
    this.#standing = line.join(this, this.#since);
    // What passes until an endpoint has started says nothing of how fast it will be.
    if (this.#places === 0) line.drain.pause();
    x.leaveLine = () => this.#leave(false);
    x.scope.add(x.leaveLine);
    this.#watch();
    this.#onJoined?.();
    // There may be room that those before it could not use.
    if (this.#backend.endpoints.some((endpoint) => endpoint.hasRoom)) world.wake(this.#backend);
  }

  onTurn(): Turn {
    const x = this.#x;
    const { clock, world } = this.#path.deps;
    const now = clock.mono();
    const present = world.backends.get(this.#backend.name);
    if (present && this.#backend.line.length > 1) {
      // Nobody is served too late while another one waits who can still be served in time.
      const serviceMs = this.#service(now).safeMs;
      if (serviceMs > x.deadlineAt - now) {
        this.#tooLate(now, serviceMs);
        return 'left';
      }
    }
    const endpoint = present && takePlace(x, present, this.#path.deps, now);
    if (endpoint) {
      this.#leave(true);
      this.#go(present, endpoint);
      return 'taken';
    }
    if (present && (x.only === undefined || x.only.waitMs(now) === 0)) return 'none';
    this.onHopeless();
    return 'left';
  }

  onHopeless(): void {
    this.#leave(false);
    this.#path.plan(this.#x, this.#x.attemptsOfRung > 0);
  }

  yield(rule: Yielding<Yielder>['rule'], to: Yielder, max: number): () => void {
    const x = this.#x;
    const { waiting, name } = x.route!;
    const figures = { rule, waiting: waiting.count, max, priority: x.priority, tenant: x.tenant };
    this.#leave(false);
    this.#path.step(x, 'wait', 'displaced', { ...figures, by: to.id }, `routes.${name}.queue.max`);
    return () => this.#turnAway('displaced', displaced(name), this.#waitMs);
  }

  /** Its timer: the last moment at which it could be served in time, as far as is known; after that, its deadline. */
  #watch(): void {
    const x = this.#x;
    if (!this.#standing || x.over) return;
    const { clock, timers } = this.#path.deps;
    const now = clock.mono();
    const serviceMs = this.#service(now).levelMs;
    const dueMs = x.deadlineAt - serviceMs - now;
    if (serviceMs === 0 || dueMs <= 0) {
      this.#path.watchTime(x);
      return;
    }
    timers.clear(x.timer);
    x.timer = timers.set(Math.max(1, dueMs), () => this.#onTime());
  }

  #onTime(): void {
    if (!this.#standing || this.#x.over) return;
    const now = this.#path.deps.clock.mono();
    const serviceMs = this.#service(now).levelMs;
    if (serviceMs > 0 && this.#x.deadlineAt - serviceMs - now <= 1) this.#tooLate(now, serviceMs);
    else this.#watch();
  }

  #tooLate(now: number, serviceMs: number): void {
    const x = this.#x;
    this.#leave(false);
    const figures = {
      leftMs: Math.round(x.deadlineAt - now),
      serviceMs: Math.round(serviceMs),
      predictedMs: told(this.#waitMs),
      waiting: this.#backend.line.length,
    };
    this.#path.step(x, 'wait', 'too-late-to-serve', figures, `routes.${x.route!.name}.deadline`);
    this.#turnAway('too-late-to-serve', wouldMiss(x.route!.name, 'queued'), this.#waitMs);
  }

  #leave(served: boolean): void {
    const standing = this.#standing;
    if (!standing) return;
    this.#standing = undefined;
    const x = this.#x;
    x.leaveLine = undefined;
    const path = this.#path;
    const now = path.deps.clock.mono();
    x.route!.waiting.remove(this.#inQueue!);
    if (served) this.#backend.line.serve(standing, now);
    else this.#backend.line.leave(standing, now);
    const waitedMs = now - this.#since;
    x.waitedMs += waitedMs;
    path.deps.metrics.queueSeconds.of(x.priority).observe(waitedMs / 1000);
    path.step(x, 'wait', 'waited', { waitedMs: Math.round(waitedMs), priority: x.priority });
  }

  /** Another way, or a refusal that says when to come again. */
  #turnAway(reason: string, failure: Failure, againMs: number): void {
    const x = this.#x;
    const again = retryAfterSeconds(boundedAgain(againMs), this.#path.deps.random.next());
    x.failure = { ...failure, retryAfterSeconds: again };
    x.shedFor = reason;
    if (!nextTier(this.#path, x)) descend(this.#path, x);
  }

  #service(now: number) {
    const { call, cost } = this.#x;
    return this.#backend.line.service.expected(serviceKind(call!), serviceSize(call!, cost), now);
  }
}

/** Milliseconds as a figure: one that has no end is told as a day. */
function told(ms: number): number {
  return Math.round(Math.min(ms, 86_400_000));
}
