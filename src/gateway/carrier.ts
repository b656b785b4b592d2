import { Scope } from '../kernel/scope.ts';
import type { OipModelCall, OpenaiCall } from './call.ts';
import type { Caller, HeaderList } from './contracts.ts';
import type { Cost } from './cost.ts';
import { Exchange } from './exchange.ts';
import type { Path } from './path.ts';
import { adoptFate, armOfCarrier } from './release/arms.ts';

/** Headers that each caller of a shared answer gets anew. */
const OWN_HEADERS = /^(?:x-request-id|x-armature-(?:id|route|degraded)|x-ratelimit-.*)$/;

/**
 * The caller's side of a request that the gateway sends in place of those of several callers, its members. It is planned,
 * sent and recovered like any other, and counted and charged as none: the members are.
 */
export abstract class CarrierCaller implements Caller {
  readonly method = 'POST';
  readonly target: string;
  readonly body: Buffer;
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  /** The request itself, once it is on its way. */
  carrier: Exchange | undefined;
  readonly #untilClosed = new Scope();

  constructor(target: string, body: Buffer) {
    this.target = target;
    this.body = body;
  }

  abstract header(name: string): string | undefined;
  abstract respond(status: number, headers: HeaderList, body: Buffer | string): void;
  abstract open(status: number, headers: HeaderList): void;
  abstract write(piece: Buffer | string): boolean;
  abstract end(): void;
  abstract destroy(): void;

  headerCount(name: string): number {
    return this.header(name) === undefined ? 0 : 1;
  }

  whenClosed(run: () => void): void {
    this.#untilClosed.add(run);
  }

  /** To be called once, when nothing of the answer is held any more. */
  protected close(): void {
    this.#untilClosed.close();
  }
}

/** Makes the request of a carrier, like that of its first member; it is not on its way yet. */
export function openCarrier(
  path: Path,
  caller: CarrierCaller,
  first: Exchange,
  call: OpenaiCall | OipModelCall,
  cost: Cost,
): Exchange {
  const { clock } = path.deps;
  // The engine, and what its failure causes, know it by the first member's ids: those have a record.
  const x = new Exchange(caller, first.id, first.requestId, clock.mono(), clock.wall());
  x.isCarrier = true;
  x.snapshot = first.snapshot;
  x.tenant = first.tenant;
  x.priority = first.priority;
  x.deadlineAt = first.deadlineAt;
  x.call = call;
  x.route = first.route;
  x.session = first.session;
  x.armed = armOfCarrier(first);
  x.askedTier = first.askedTier;
  x.traceparent = first.traceparent;
  x.cost = cost;
  x.targets = first.targets;
  x.lookedUpIn = first.lookedUpIn;
  caller.carrier = x;
  caller.onGone = () => path.gone(x);
  path.running.add(x);
  path.watchTime(x);
  return x;
}

/** A member that has come adds its wishes: the carrier has the highest priority and the latest deadline of them all. */
export function widen(path: Path, carrier: Exchange, member: Exchange): void {
  if (member.deadlineAt > carrier.deadlineAt) {
    carrier.deadlineAt = member.deadlineAt;
    path.watchTime(carrier);
  }
  if (member.rank >= carrier.rank) return;
  carrier.priority = member.priority;
  if (!carrier.leaveLine) return; // it does not wait in line now
  carrier.leaveLine();
  path.plan(carrier, carrier.attemptsOfRung > 0);
}

/** Tells a member what came of the carrier: who answered, what it took, and each step of it as one of its own. */
export function tell(path: Path, carrier: Exchange, member: Exchange, joinedAt: number): void {
  member.outcome = carrier.outcome;
  member.failure = carrier.failure;
  member.status = carrier.status;
  member.degraded = carrier.degraded;
  member.backend = carrier.backend;
  member.attempts = carrier.attempts;
  member.upstreamMs += path.deps.clock.mono() - joinedAt;
  member.shedFor = carrier.shedFor;
  if (member.armed) adoptFate(member.armed, carrier.armed);
  const laterBy = carrier.startedAt - member.startedAt;
  for (const step of carrier.steps) member.steps.push({ ...step, at: Math.max(0, step.at + laterBy) });
  member.steps.sort((a, b) => a.at - b.at);
}

/** What of the carrier's headers is the members' as well. */
export function sharedHeaders(headers: HeaderList): HeaderList {
  const shared: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (!OWN_HEADERS.test(headers[i]!)) shared.push(headers[i]!, headers[i + 1]!);
  }
  return shared;
}

export function headerOf(headers: HeaderList, name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each === name);
  return at < 0 ? undefined : headers[at + 1];
}

export function isStream(headers: HeaderList): boolean {
  return headerOf(headers, 'content-type')?.startsWith('text/event-stream') === true;
}

export function without(headers: HeaderList, ...names: string[]): HeaderList {
  return headers.filter((_, i) => !names.includes(headers[i - (i % 2)]!));
}
