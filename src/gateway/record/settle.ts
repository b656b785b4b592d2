import type { Outcome, RequestRecord } from '../../events/contracts.ts';
import type { Failure } from '../../kernel/errors.ts';
import { ERRORS } from '../../kernel/errors.ts';
import type { WorkerMetrics } from '../../telemetry/metrics.ts';
import type { FactSink } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { tokensUsed } from '../quota/charge.ts';
import type { EvidenceGatherer } from '../release/evidence.ts';
import { SessionMoves, type SessionMovesDeps } from './session-moves.ts';

/** How a request that ended in this failure is counted. */
export function outcomeOf(failure: Failure): Outcome {
  const status = failure.status ?? ERRORS[failure.code].status;
  if (status === 429 || status === 503) return 'refused';
  return status >= 500 ? 'failed' : 'invalid';
}

/** Whether it was refused for want of room or time. */
export function isShed({ code }: Failure): boolean {
  return (
    code === 'overloaded' || code === 'quota_exceeded' || code === 'draining' || code === 'deadline_exceeded'
  );
}

/** Children of the metrics that one (route, tenant) raises, kept so that raising them costs no look-up. */
class RouteCounters {
  readonly byOutcome = new Map<Outcome, { add(): void }>();
  readonly seconds: { observe(seconds: number): void };
  readonly firstToken: { observe(seconds: number): void };
  readonly tokensIn: { add(amount: number): void };
  readonly tokensOut: { add(amount: number): void };
  #cost: { add(amount: number): void } | undefined;
  readonly #metrics: WorkerMetrics;
  readonly #route: string;
  readonly #tenant: string;

  constructor(metrics: WorkerMetrics, route: string, tenant: string) {
    this.#metrics = metrics;
    this.#route = route;
    this.#tenant = tenant;
    this.seconds = metrics.requestSeconds.of(route);
    this.firstToken = metrics.firstTokenSeconds.of(route);
    this.tokensIn = metrics.tokens.of(route, tenant, 'in');
    this.tokensOut = metrics.tokens.of(route, tenant, 'out');
  }

  /** Only where a backend has a price. */
  cost(amount: number): void {
    this.#cost ??= this.#metrics.cost.of(this.#route, this.#tenant);
    this.#cost.add(amount);
  }

  ended(outcome: Outcome): void {
    let tally = this.byOutcome.get(outcome);
    if (!tally) {
      tally = this.#metrics.requests.of(this.#route, this.#tenant, outcome);
      this.byOutcome.set(outcome, tally);
    }
    tally.add();
  }
}

/** Counts requests that have ended, and records them. */
export class Settler {
  readonly #metrics: WorkerMetrics;
  readonly #facts: FactSink;
  readonly #moves: SessionMoves;
  readonly #evidence: EvidenceGatherer;
  readonly #counters = new Map<string, RouteCounters>();

  constructor(deps: SessionMovesDeps & { metrics: WorkerMetrics; evidence: EvidenceGatherer }) {
    this.#metrics = deps.metrics;
    this.#facts = deps.facts;
    this.#moves = new SessionMoves(deps);
    this.#evidence = deps.evidence;
  }

  settle(x: Exchange, now: number): void {
    if (x.charged === 'nothing') return;
    const route = x.route?.name ?? '';
    const outcome = x.outcome!;
    const durationMs = now - x.startedAt;
    const counters = this.#of(route, x.tenant);
    if (x.tokensIn) counters.tokensIn.add(x.tokensIn);
    if (x.tokensOut) counters.tokensOut.add(x.tokensOut);
    if (x.backend?.settings.price) counters.cost(costOf(x, x.backend.settings.price));
    if (x.placeKey !== undefined || x.last !== undefined) this.#moves.settled(x);
    if (x.armed !== undefined) this.#evidence.gather(x, now);
    if (x.charged === 'stage') return; // its pipeline counts as the request, and has the record
    counters.ended(outcome);
    counters.seconds.observe(durationMs / 1000);
    this.#metrics.overheadSeconds.observe(Math.max(0, durationMs - x.waitedMs - x.upstreamMs) / 1000);
    if (x.firstContentAt !== undefined && x.call!.stream) {
      counters.firstToken.observe((x.firstContentAt - x.startedAt) / 1000);
    }
    const reason = reasonOf(x);
    const ended = { id: x.id, wallMs: x.wallMs, route, tenant: x.tenant, reason };
    if (x.snapshot && this.#facts.wantsRecord(ended)) {
      this.#facts.push({ kind: 'request', record: recordOf(x, route, durationMs) });
    }
  }

  #of(route: string, tenant: string): RouteCounters {
    const key = `${route}\u0000${tenant}`;
    let counters = this.#counters.get(key);
    if (!counters) {
      counters = new RouteCounters(this.#metrics, route, tenant);
      this.#counters.set(key, counters);
    }
    return counters;
  }
}

/** What requests without a record of their own are counted by: how it ended, and for what. */
function reasonOf({ outcome, failure, shedFor }: Exchange): string {
  const was = outcome!;
  if (was === 'ok') return was;
  const cause = was === 'refused' || was === 'degraded' ? (shedFor ?? failure?.code) : failure?.code;
  return cause === undefined ? was : `${was}:${cause}`;
}

/** A price is for a million tokens. */
function costOf(x: Exchange, price: { in: number; out: number }): number {
  const used = tokensUsed(x);
  return used ? (used.in * price.in + used.out * price.out) / 1e6 : 0;
}

function recordOf(x: Exchange, route: string, durationMs: number): RequestRecord {
  const outcome = x.outcome!;
  const failed = outcome !== 'ok' && outcome !== 'degraded' && outcome !== 'aborted';
  return {
    id: x.id,
    ...(x.requestId === x.id ? {} : { requestId: x.requestId }),
    wallMs: x.wallMs,
    tenant: x.tenant,
    route,
    priority: x.priority,
    call: x.call?.kind ?? x.stateful?.stateful ?? 'unknown',
    stream: x.call?.stream ?? false,
    outcome,
    ...(failed && x.failure ? { code: x.failure.code } : {}),
    status: x.status,
    ...(x.backend ? { backend: x.backend.name } : {}),
    ...(x.attempt ? { endpoint: x.attempt.endpoint.address } : {}),
    ...(x.degraded === undefined ? {} : { rung: x.degraded }),
    durationMs: round(durationMs),
    ...(x.firstContentAt === undefined ? {} : { firstContentMs: round(x.firstContentAt - x.startedAt) }),
    ...(x.tokensIn === undefined ? {} : { tokensIn: x.tokensIn }),
    ...(x.tokensOut === undefined ? {} : { tokensOut: x.tokensOut }),
    attempts: x.attempts,
    ...(x.traceparent ? { traceId: x.traceparent.traceId } : {}),
    snapshot: x.snapshot!.number,
    snapshotEvent: x.snapshot!.event,
    steps: x.steps.map((step) => ({ ...step, at: round(step.at) })),
  };
}

/** Milliseconds to the microsecond. */
function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
