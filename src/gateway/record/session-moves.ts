import { eventMaker } from '../../events/event-maker.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { FactSink } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { sessionPlace } from '../session-place.ts';
import type { SessionPlace } from '../state/session-places.ts';
import type { World } from '../state/world.ts';

/** A session was answered by another backend than before, or in another tier. */
export interface SessionMove {
  from: string;
  fromModel: string;
  to: string;
  toModel: string;
  fromTier?: string;
  toTier?: string;
  reason: string;
  /** The value of the configuration that says so. */
  setting?: string;
}

export interface SessionMovesDeps {
  clock: Clock;
  random: Random;
  timers: Timers;
  facts: FactSink;
  world: World;
}

/** Moves of a second that are told one by one; the rest of it as their number. */
const MOVES_PER_SECOND = 20;
const SECOND_MS = 1_000;

/** Remembers where sessions are answered, and tells the ledger when one moves. */
export class SessionMoves {
  readonly #deps: SessionMovesDeps;
  readonly #event: ReturnType<typeof eventMaker>;
  #second = Number.NEGATIVE_INFINITY;
  #told = 0;
  /** Moves that are not told one by one, by route. */
  readonly #untold = new Map<string, number>();

  constructor(deps: SessionMovesDeps) {
    this.#deps = deps;
    this.#event = eventMaker(deps.clock, deps.random);
  }

  /** To be called when a request is over, before it is recorded. */
  settled(x: Exchange): void {
    const { world, clock } = this.#deps;
    if (!isAnswered(x)) return;
    const before = sessionPlace(world, x);
    const move = before && moveFrom(before, world, x, clock.mono());
    if (x.placeKey !== undefined) {
      world.sessionPlaces.put(x.placeKey, {
        backend: x.backend!.name,
        model: x.backend!.model,
        stoodIn: x.stoodIn || x.armed?.standsIn === true,
        home: x.tiering?.home ?? before?.home,
        tier: x.backend!.settings.tier,
      });
    }
    if (!move) return;
    x.move = move;
    const figures = { ...move };
    x.steps.push({ at: clock.mono() - x.startedAt, what: 'answer', code: 'moved', figures });
    if (!x.stateful) this.#tell(x, move); // a turn that is kept tells it once it is
  }

  #tell(x: Exchange, move: SessionMove): void {
    const { clock, timers } = this.#deps;
    const now = clock.mono();
    const route = x.route!.name;
    if (now - this.#second >= SECOND_MS) {
      this.#second = now;
      this.#told = 0;
    }
    if (this.#told++ < MOVES_PER_SECOND) {
      const session = x.placeKey!.slice(x.placeKey!.indexOf('\u0000') + 1 + x.tenant.length + 1);
      this.#push('session-moved', `session:${session}`, [x.id], { tenant: x.tenant, route, ...move });
      return;
    }
    if (this.#untold.size === 0) timers.set(SECOND_MS, () => this.#tellRest());
    this.#untold.set(route, (this.#untold.get(route) ?? 0) + 1);
  }

  #tellRest(): void {
    for (const [route, count] of this.#untold)
      this.#push('sessions-moved', `route:${route}`, [], { route, count });
    this.#untold.clear();
  }

  #push(type: string, subject: string, causes: string[], data: Record<string, unknown>): void {
    this.#deps.facts.push({ kind: 'event', event: this.#event({ type, subject, causes, data }) });
  }
}

/** How its session moved with this request, as far as it is known where it was before. */
export function sessionMove(world: World, x: Exchange, now: number): SessionMove | undefined {
  if (x.move) return x.move;
  const before = sessionPlace(world, x);
  return before && x.backend && x.attempt ? moveFrom(before, world, x, now) : undefined;
}

/** By an engine, now; in part as well. */
function isAnswered({ outcome, committed, backend, attempt }: Exchange): boolean {
  const answered = outcome === 'ok' || outcome === 'degraded' || committed;
  return answered && backend !== undefined && attempt !== undefined;
}

function moveFrom(before: SessionPlace, world: World, x: Exchange, now: number): SessionMove | undefined {
  const to = x.backend!;
  const toTier = to.settings.tier;
  const otherTier = x.route!.tiers !== undefined && before.tier !== toTier;
  if (before.backend === to.name && before.model === to.model) return undefined;
  // Where nothing keeps sessions together each request goes where it happens to.
  if (!otherTier && !x.stateful && x.route!.settings.affinity !== 'session' && !isOfRelease(before, x))
    return undefined;
  const byTier = otherTier && x.degraded === undefined && x.tiering !== undefined;
  return {
    from: before.backend,
    fromModel: before.model,
    to: to.name,
    toModel: to.model,
    ...(before.tier === undefined ? {} : { fromTier: before.tier }),
    ...(toTier === undefined ? {} : { toTier }),
    reason: byTier ? whyTier(before, x) : whyMoved(before, world, x, now),
    ...(byTier ? { setting: x.tiering!.setting } : {}),
  };
}

/** To the canary or away from it: told whatever keeps sessions together on this route. */
function isOfRelease(before: SessionPlace, { armed, backend }: Exchange): boolean {
  const canary = armed?.release.arms.canary;
  return canary !== undefined && (before.backend === canary || backend!.name === canary);
}

function whyTier({ home, tier }: SessionPlace, { tiering, backend }: Exchange): string {
  const { code, passed, home: wanted } = tiering!;
  if (passed !== undefined) return `tier-${passed}`;
  return home !== tier && wanted === home && backend!.settings.tier === home ? 'tier-back' : code;
}

function whyMoved(before: SessionPlace, world: World, x: Exchange, now: number): string {
  const { name, settings } = x.route!;
  if (x.degraded !== undefined) return `rung:${x.degraded}`;
  if (before.backend === x.backend!.name) return 'model-changed';
  const target = settings.targets.find(({ backend }) => backend === before.backend);
  const present = world.backends.get(before.backend);
  if (x.route!.takenBack === before.backend) return 'rolled-back';
  if (!target || !present)
    return [...world.routes.values()].some(
      (route) =>
        route.name !== name && route.settings.targets.some(({ backend }) => backend === before.backend),
    )
      ? 'other-route'
      : 'target-removed';
  if (target.weight === 0) return 'weight-zero';
  if (present.endpoints.every((endpoint) => endpoint.waitMs(now) > 0)) return 'endpoints-unwell';
  if (x.tried.some((endpoint) => endpoint.backend === before.backend)) return 'attempt-failed';
  if (x.armed?.standsIn) return 'arm-stands-in';
  if (x.armed?.arm === 'canary') return 'canary-share';
  return settings.affinity === 'session' ? 'weights' : 'no-affinity';
}
