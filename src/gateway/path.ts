import type { Step } from '../events/contracts.ts';
import { Bag } from '../kernel/bag.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Failure } from '../kernel/errors.ts';
import { idMaker } from '../kernel/ids.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import type { WorkerMetrics } from '../telemetry/metrics.ts';
import { admit } from './admit.ts';
import type { Answers } from './answers/index.ts';
import type { BufferBudget } from './buffer-budget.ts';
import { type Call, readCall } from './call.ts';
import { awaitedStart, wakeByShare } from './cold-start.ts';
import type {
  Caller,
  ContextFitter,
  FactSink,
  InnerAsk,
  InnerRequest,
  InnerSink,
  PipelineRunner,
  StatefulEndpoints,
} from './contracts.ts';
import { reckonCost, weightOf } from './cost.ts';
import { breakOff } from './delivery.ts';
import { readTraceparent } from './dispatch/headers.ts';
import { send } from './dispatch/send.ts';
import type { EndpointWatch } from './endpoint-watch.ts';
import { Exchange } from './exchange.ts';
import {
  allCooling,
  deadlinePassed,
  drainingFailure,
  noEndpoint,
  noTarget,
  nothingKept,
} from './failures.ts';
import { findRoute } from './find-route.ts';
import { identify, readRequestId } from './identify.ts';
import { InnerCaller } from './inner-caller.ts';
import { descend, goStraight } from './ladder.ts';
import { failureAnswer, type OwnAnswer, ownAnswer } from './own-answers.ts';
import { plan } from './plan.ts';
import type { Preparing } from './preparing/index.ts';
import { addQuotaHeaders, reserveQuota } from './quota/reserve.ts';
import { isShed, outcomeOf, Settler } from './record/settle.ts';
import { assignArm, chooseArm } from './release/arms.ts';
import type { EvidenceGatherer } from './release/evidence.ts';
import type { Sequences } from './sequences.ts';
import type { ShadowCopies } from './shadow/index.ts';
import type { Endpoint } from './state/endpoint.ts';
import { type Backend, deadlineSetting, type World } from './state/world.ts';
import { chooseTier } from './tiers.ts';
import { waitForPlace } from './wait.ts';

export interface PathDeps {
  clock: Clock;
  random: Random;
  timers: Timers;
  world: World;
  metrics: WorkerMetrics;
  facts: FactSink;
  evidence: EvidenceGatherer;
  buffers: BufferBudget;
  sequences: Sequences;
  answers: Answers;
  shadows: ShadowCopies;
  /** Absent where nothing makes tokens of texts. */
  preparing: Preparing | undefined;
  pipelines: PipelineRunner;
  contexts: ContextFitter;
  /** Absent where there is no place to keep state, such as in a simulation. */
  stateful?: StatefulEndpoints | undefined;
  watch: EndpointWatch;
  version: string;
}

/** The request path: listen -> identify -> parse -> admit -> plan -> dispatch -> relay -> settle -> record. */
export class Path {
  readonly deps: PathDeps;
  readonly running = new Bag<Exchange>();
  /** A drain has begun: whoever sends traffic here should stop. */
  unready = false;
  /** Requests are refused as `draining`. */
  draining = false;
  readonly #newId: (wallMs: number) => string;
  readonly #settler: Settler;

  constructor(deps: PathDeps) {
    this.deps = deps;
    this.#newId = idMaker('req', deps.random);
    this.#settler = new Settler(deps);
  }

  /** Takes a request whose body has been read. */
  handle(caller: Caller): void {
    const x = this.#open(caller);
    const { world } = this.deps;
    if (this.draining && caller.terms?.charged !== 'stage') {
      this.refuse(x, drainingFailure());
      return;
    }
    const tenant = identify(caller, world);
    if (typeof tenant !== 'string') {
      this.refuse(x, tenant);
      return;
    }
    x.tenant = tenant;
    const call = readCall(caller);
    if ('stateful' in call) {
      x.stateful = call;
      if (this.deps.stateful) this.deps.stateful.take(this, x);
      else this.refuse(x, nothingKept(call.path));
    } else if ('own' in call) {
      const answer = ownAnswer(call, tenant, world, {
        version: this.deps.version,
        unready: this.unready,
      });
      if ('code' in answer) this.refuse(x, answer);
      else this.answer(x, answer, 'ok');
    } else if ('code' in call) this.refuse(x, call);
    else this.route(x, call);
  }

  /** Sends a request of the gateway's own through the path. Its answer may come before this returns. */
  ask(request: InnerRequest, sink: InnerSink): InnerAsk {
    const caller = new InnerCaller(request, sink);
    this.handle(caller);
    return caller;
  }

  /** Why this caller is not known, by its head alone: strangers get no room for their bodies. */
  strangerOf(caller: Caller): Failure | undefined {
    const tenant = identify(caller, this.deps.world);
    return typeof tenant === 'string' ? undefined : tenant;
  }

  /** Refuses a request whose body was never read whole. */
  refuseUnread(caller: Caller, failure: Failure): void {
    this.refuse(this.#open(caller), failure);
  }

  #open(caller: Caller): Exchange {
    const { clock, world } = this.deps;
    const wallMs = clock.wall();
    const { terms } = caller;
    const id = terms?.ids?.id ?? this.#newId(wallMs);
    const requestId = terms?.ids?.requestId ?? readRequestId(caller) ?? id;
    const x = new Exchange(caller, id, requestId, clock.mono(), wallMs);
    x.terms = terms;
    x.fits = terms?.fit === true;
    x.snapshot = world.snapshot;
    this.running.add(x);
    caller.onGone = () => this.gone(x);
    return x;
  }

  /** What is asked for is known: the route or the pipeline that has to answer it is looked up, and the request admitted. */
  route(x: Exchange, call: Call): void {
    const { world } = this.deps;
    x.call = call;
    const route = findRoute(x, call.route, world);
    if ('code' in route) {
      this.refuse(x, route);
      return;
    }
    x.route = route;
    x.traceparent = x.terms?.traceparent ?? readTraceparent(x.caller.header('traceparent'));
    const refused = admit(x, world);
    if (refused) {
      this.refuse(x, refused);
      return;
    }
    if (route.pipeline) {
      x.charged = 'pipeline';
      x.cost = { tokensIn: 0, tokensOut: 0 };
    } else x.cost = reckonCost(call, x.caller.body.length, route.usualOut.value);
    x.targets = route.targets[call.protocol];
    if (route.release !== undefined) assignArm(this, x, route.release);
    if (world.routes.get(route.name) === route) x.lookedUpIn = world.snapshot;
    if (x.targets.length === 0 && !route.pipeline) {
      this.refuse(x, noTarget(call, route.settings.retired));
      return;
    }
    const line = world.quotas.lineOf(x.tenant, route.name);
    if (line) reserveQuota(this, x, call, line);
    else this.begin(x, call);
  }

  /** It is admitted: an answer is looked for. */
  begin(x: Exchange, call: Call): void {
    if (x.route!.pipeline) {
      this.deps.pipelines.run(this, x);
      return;
    }
    x.route!.retries.observe({ budget: x.route!.settings.retry.budget });
    if (call.protocol === 'oip' && call.request?.sequence) this.#planSequence(x, call.request.sequence);
    else if (!x.route!.answers || !this.deps.answers.begin(this, x)) this.start(x);
  }

  /** An engine is to answer it: in full, unless requests like it are held at a rung below. */
  start(x: Exchange): void {
    const held = x.route!.hold?.holds && x.terms?.ladder !== false;
    if (!held || !goStraight(this, x)) this.plan(x, false);
  }

  /** Chooses where it goes now. `again`: an endpoint that was tried may be tried on a fresh connection. */
  plan(x: Exchange, again: boolean): void {
    this.#lookUp(x);
    if (x.armed !== undefined) chooseArm(this, x);
    if (x.route!.tiers !== undefined) chooseTier(this, x);
    if (this.deps.world.idleHosts > 0 && x.targets.length > 1 && x.attempts === 0) wakeByShare(this, x);
    const found = plan(x, this.deps, this.deps.clock.mono(), again);
    if (found.kind === 'go') send(this, x, found.backend, found.endpoint, found.fresh);
    else if (found.kind === 'wait') this.#wait(x, found.backend);
    else this.nowhere(x);
  }

  #wait(x: Exchange, backend: Backend): void {
    waitForPlace(this, x, backend, (present, endpoint) =>
      send(this, x, present, endpoint, x.tried.includes(endpoint)),
    );
  }

  /** Its targets as the present snapshot has them; what it was admitted on may be long gone. */
  #lookUp(x: Exchange): void {
    const { world } = this.deps;
    if (x.lookedUpIn === world.snapshot) return;
    x.lookedUpIn = world.snapshot;
    x.targets = world.present(x.targets);
  }

  /** Once more at the same endpoint, on a fresh connection; the place it had there is free again. */
  repeat(x: Exchange, backend: Backend, endpoint: Endpoint): void {
    const now = this.deps.clock.mono();
    if (endpoint.waitMs(now) === 0 && endpoint.take(weightOf(x.cost), backend.line.length + 1)) {
      send(this, x, backend, endpoint, true);
    } else this.plan(x, false);
  }

  /** No endpoint can be used now: a host that is starting, the next rung, or a refusal that says when to come again. */
  nowhere(x: Exchange): void {
    const awaited = awaitedStart(this, x);
    if (awaited) {
      this.#wait(x, awaited);
      return;
    }
    const now = this.deps.clock.mono();
    const endpoints = x.targets.flatMap(({ backend }) => backend.endpoints);
    const cooling = endpoints.filter((endpoint) => endpoint.coolUntil > now && !endpoint.unwell);
    const earliest = Math.min(...cooling.map((endpoint) => endpoint.coolUntil - now));
    const failure =
      cooling.length > 0 ? allCooling(x.route!.name, earliest) : noEndpoint(x.route!.name, endpoints.length);
    // What an attempt met says more than that nothing is left, save when it was told to come again later.
    if (!x.failure || failure.code === 'overloaded') x.failure = failure;
    this.step(x, 'plan', 'no-endpoint', {
      endpoints: endpoints.length,
      cooling: cooling.length,
      unwell: endpoints.filter((endpoint) => endpoint.unwell).length,
      open: endpoints.filter((endpoint) => endpoint.breaker.state !== 'closed').length,
    });
    const causes = endpoints.flatMap((endpoint) => endpoint.cause ?? []);
    if (causes.length > 0) x.steps.at(-1)!.causes = causes;
    descend(this, x);
  }

  step(x: Exchange, what: Step['what'], code: string, figures: Step['figures'], setting?: string): void {
    const at = this.deps.clock.mono() - x.startedAt;
    x.steps.push({ at, what, code, figures, ...(setting === undefined ? {} : { setting }) });
  }

  /** An answer of Armature's own. */
  answer(x: Exchange, answer: OwnAnswer, outcome: 'ok' | 'degraded'): void {
    x.status = answer.status;
    x.outcome = outcome;
    this.addHeaders(x, answer.headers);
    x.caller.respond(answer.status, answer.headers, answer.body);
    this.finish(x);
  }

  /** An error, as the caller's protocol tells it; for an answer that has begun, see breakOff. */
  refuse(x: Exchange, failure: Failure): void {
    if (x.over) return;
    x.failure = failure;
    x.outcome = outcomeOf(failure);
    const answer = failureAnswer(failure, x.caller.target);
    x.status = answer.status;
    if (!x.isCarrier && isShed(failure)) {
      this.deps.metrics.shed.of(x.route?.name ?? '', x.shedFor ?? failure.code).add();
    }
    this.step(x, 'answer', failure.code, { status: answer.status, phase: failure.phase });
    if (this.draining || failure.code === 'draining') answer.headers.push('connection', 'close');
    this.addHeaders(x, answer.headers);
    x.caller.respond(answer.status, answer.headers, answer.body);
    this.finish(x);
  }

  /** Adds the headers by which an answer says where it came from. */
  addHeaders(x: Exchange, headers: string[]): void {
    headers.push('x-request-id', x.requestId, 'x-armature-id', x.id);
    if (x.route) headers.push('x-armature-route', x.route.name);
    const answered = x.outcome === 'ok' || x.outcome === 'degraded' || x.committed;
    if (answered && x.backend && x.attempt) headers.push('x-armature-backend', x.backend.name);
    if (answered && x.degraded !== undefined) headers.push('x-armature-degraded', x.degraded);
    if (x.quota) addQuotaHeaders(this, x, headers);
  }

  /** The caller left: everything done for it ends at once. */
  gone(x: Exchange): void {
    if (x.over) return;
    x.outcome = 'aborted';
    this.step(x, 'answer', 'caller-left', { committed: x.committed });
    this.finish(x);
  }

  /** The drain is over: what still runs ends with an error that may be retried elsewhere. */
  endAll(): void {
    // Those that wait go first, so that no place that comes free is given to them now.
    const served = (x: Exchange) => x.attempt !== undefined && !x.attempt.over;
    for (const x of [...this.running].sort((a, b) => Number(served(a)) - Number(served(b)))) {
      const failure = { ...drainingFailure(), phase: x.phase };
      if (x.committed) breakOff(this, x, failure);
      else this.refuse(x, failure);
    }
    this.deps.shadows.close();
  }

  finish(x: Exchange): void {
    if (x.over) return;
    x.over = true;
    x.caller.onGone = undefined;
    x.caller.onDrain = undefined;
    this.deps.timers.clear(x.timer);
    x.attempt?.cancel();
    x.hedge?.cancel();
    x.scope.close();
    this.running.delete(x);
    if (!x.isCarrier) this.#settler.settle(x, this.deps.clock.mono());
    x.terms?.onOver?.(x);
  }

  /** To be called when a request has come further: one timer watches the deadline and the time limits of the attempt, whichever comes first. */
  watchTime(x: Exchange): void {
    if (x.over) return;
    const { clock, timers } = this.deps;
    timers.clear(x.timer);
    let attemptDue = x.attempt && !x.attempt.over ? x.attempt.dueAt : Number.POSITIVE_INFINITY;
    if (x.hedge !== undefined) attemptDue = Math.min(attemptDue, x.hedge.dueAt);
    const due = x.streaming ? attemptDue : Math.min(x.deadlineAt, attemptDue);
    x.timer = timers.set(Math.max(1, due - clock.mono()), () => this.#onTime(x));
  }

  #onTime(x: Exchange): void {
    if (x.over) return;
    const now = this.deps.clock.mono();
    if (now >= x.deadlineAt && !x.streaming) {
      this.#outOfTime(x);
      return;
    }
    x.attempt?.checkTime(now);
    if (!x.over) x.hedge?.checkTime(now);
    if (!x.over) this.watchTime(x);
  }

  #outOfTime(x: Exchange): void {
    const ms = Math.round(x.deadlineAt - x.startedAt);
    const what = x.call!.stream ? 'the first content' : 'the answer';
    const failure = deadlinePassed(ms, what, x.attempts > 0 ? 'sent' : 'queued');
    x.failure = failure;
    this.step(
      x,
      'answer',
      'deadline-passed',
      { deadlineMs: ms, attempts: x.attempts },
      deadlineSetting(x.route!),
    );
    if (x.committed) breakOff(this, x, failure);
    else {
      x.attempt?.cancel();
      x.hedge?.cancel();
      descend(this, x);
    }
  }

  #planSequence(x: Exchange, sequence: { id: string; start: boolean; end: boolean }): void {
    const { clock, sequences } = this.deps;
    const now = clock.mono();
    const key = `${x.route!.name}\u0000${x.session}`; // callers count from 1 on every model
    const found = sequences.endpointOf(key, sequence.start, x.targets, now);
    if (found && sequence.end) sequences.forget(key);
    if (!found) {
      this.nowhere(x); // where its state lay is gone: nobody else can go on with it
      return;
    }
    x.only = found.endpoint;
    x.targets = x.targets.filter(({ name }) => name === found.backend.name);
    this.plan(x, false);
  }
}
