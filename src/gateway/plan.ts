import type { Random } from '../kernel/random.ts';
import { leastCostOfTwo, readOf } from '../policies/least-cost-of-two/index.ts';
import type { Holders } from '../policies/prefix-affinity/holders.ts';
import { prefixAffinity } from '../policies/prefix-affinity/index.ts';
import { targetByWeight } from '../policies/target-by-weight/index.ts';
import { LiveChoice } from './choice.ts';
import { weightOf } from './cost.ts';
import type { Exchange } from './exchange.ts';
import { KeptRandom } from './kept-random.ts';
import { noteDecision } from './note-decision.ts';
import { beginningsOf, prefixInput } from './prefix.ts';
import type { Endpoint } from './state/endpoint.ts';
import { isRoomFor } from './state/room.ts';
import type { SessionPlaces } from './state/session-places.ts';
import type { Backend, Target } from './state/world.ts';
import { targetInput } from './target-choice.ts';

/** What a plan comes to: an endpoint with a place taken, a backend to wait for, or nothing that can be used. */
export type Plan =
  | { kind: 'go'; backend: Backend; endpoint: Endpoint; fresh: boolean }
  | { kind: 'wait'; backend: Backend }
  | { kind: 'none' };

export interface PlanDeps {
  random: Random;
  world: { holders: Holders; sessionPlaces?: SessionPlaces };
}

/**
 * Chooses a target and an endpoint among those that may be used now, and takes a place there. Endpoints that the request
 * has tried come last: then on a fresh connection, when `again` allows it.
 */
export function plan(x: Exchange, deps: PlanDeps, now: number, again: boolean): Plan {
  if (x.tried.length === 0 && x.targets.length === 1) return planFirst(x, x.targets[0]!.backend, deps, now);
  const untried = (backend: Backend) =>
    usableOf(x, backend, now).some((endpoint) => !x.tried.includes(endpoint));
  // A retry stays with its target while that has another endpoint.
  let targets = x.targets.filter(({ name, backend }) => name === x.backend?.name && untried(backend));
  if (targets.length === 0) targets = x.targets.filter(({ backend }) => untried(backend));
  const fresh = targets.length === 0;
  if (fresh) {
    if (!again) return { kind: 'none' };
    targets = x.targets.filter(({ backend }) => usableOf(x, backend, now).length > 0);
    if (targets.length === 0) return { kind: 'none' };
  }
  const backend = chooseTarget(x, targets, deps, now);
  const usable = usableOf(x, backend, now).filter((endpoint) => fresh || !x.tried.includes(endpoint));
  if (isKeptBack(x, backend, usable, now)) return { kind: 'wait', backend };
  const endpoint = chooseEndpoint(x, usable, deps, now, backend.line.length + 1);
  return endpoint ? { kind: 'go', backend, endpoint, fresh } : { kind: 'wait', backend };
}

/** The usual case, without the lists: one target, and nothing tried yet. */
function planFirst(x: Exchange, backend: Backend, deps: PlanDeps, now: number): Plan {
  const usable = usableOf(x, backend, now);
  if (usable.length === 0) return { kind: 'none' };
  if (isKeptBack(x, backend, usable, now)) return { kind: 'wait', backend };
  const endpoint = chooseEndpoint(x, usable, deps, now, backend.line.length + 1);
  return endpoint ? { kind: 'go', backend, endpoint, fresh: false } : { kind: 'wait', backend };
}

/** Whether there is room that is not for it: others wait for it already, or it is kept for others. */
function isKeptBack(x: Exchange, backend: Backend, usable: readonly Endpoint[], now: number): boolean {
  const { line } = backend;
  line.kept.seen(x, now);
  if (line.length === 0 && !line.kept.inForce(now)) return false;
  if (!usable.some((endpoint) => endpoint.hasRoom)) return false;
  return line.length > 0 || !isRoomFor(x, backend, now);
}

/** The backend's own list where all of it can be used: no copy for the usual case. */
function usableOf(x: Exchange, { endpoints }: Backend, now: number): readonly Endpoint[] {
  const mayUse = (endpoint: Endpoint) =>
    endpoint.waitMs(now) === 0 && (x.only === undefined || endpoint === x.only);
  return endpoints.every(mayUse) ? endpoints : endpoints.filter(mayUse);
}

/** A place at one of the backend's endpoints, for a request whose turn it is. */
export function takePlace(x: Exchange, backend: Backend, deps: PlanDeps, now: number): Endpoint | undefined {
  const usable = usableOf(x, backend, now);
  const untried = usable.filter((endpoint) => !x.tried.includes(endpoint));
  return chooseEndpoint(x, untried.length > 0 ? untried : usable, deps, now, backend.line.length + 1);
}

function chooseTarget(x: Exchange, targets: readonly Target[], deps: PlanDeps, now: number): Backend {
  x.stoodIn = targets.length < x.targets.length;
  if (targets.length === 1) return targets[0]!.backend;
  const kept = new KeptRandom(deps.random);
  const input = targetInput(x, targets, deps.world.sessionPlaces);
  const { choice, reason } = targetByWeight.decide(input, now, kept);
  noteDecision(x, now, 'plan', {
    policy: targetByWeight,
    reason,
    input,
    draws: kept.draws,
    setting: settingOf(x, 'targets'),
  });
  return targets.find(({ name }) => name === choice)!.backend;
}

function chooseEndpoint(
  x: Exchange,
  usable: readonly Endpoint[],
  deps: PlanDeps,
  now: number,
  waiting: number,
): Endpoint | undefined {
  if (usable.length === 1) {
    const only = usable[0]!;
    return only.take(weightOf(x.cost), waiting) ? only : undefined;
  }
  const roomy = usable.filter((endpoint) => endpoint.hasRoom);
  if (roomy.length === 0) return usable.find((endpoint) => endpoint.take(weightOf(x.cost), waiting));
  const beginnings = x.route!.settings.affinity === 'prefix' ? beginningsOf(x) : undefined;
  const endpoint =
    (beginnings?.length && chooseByPrefix(x, roomy, beginnings, deps, now)) ||
    chooseOfTwo(x, roomy, deps, now);
  if (!endpoint.take(weightOf(x.cost), waiting)) return undefined;
  if (beginnings) deps.world.holders.remember(beginnings, endpoint.hash);
  return endpoint;
}

function chooseOfTwo(x: Exchange, roomy: readonly Endpoint[], { random }: PlanDeps, now: number): Endpoint {
  const kept = new KeptRandom(random);
  const input = new LiveChoice(x, roomy, now);
  const decision = leastCostOfTwo.decide(input, now, kept);
  noteDecision(x, now, 'plan', {
    policy: leastCostOfTwo,
    reason: decision.reason,
    input: readOf(input, decision),
    draws: kept.draws,
    setting: settingOf(x, 'targets'),
  });
  return roomy[decision.choice]!;
}

/** undefined: by load alone. */
function chooseByPrefix(
  x: Exchange,
  roomy: readonly Endpoint[],
  beginnings: Uint32Array,
  { random, world }: PlanDeps,
  now: number,
): Endpoint | undefined {
  const input = prefixInput(x, roomy, world.holders, beginnings, now);
  const { choice, reason } = prefixAffinity.decide(input, now, random);
  noteDecision(x, now, 'plan', {
    policy: prefixAffinity,
    reason,
    input,
    draws: [],
    setting: settingOf(x, 'affinity'),
  });
  return roomy[choice];
}

function settingOf({ route }: Exchange, key: 'targets' | 'affinity'): string {
  return `routes.${route!.name}.${key}`;
}
