import { type TierView, tierChoice } from '../policies/tier-choice/index.ts';
import { serviceKind, serviceSize } from './cost.ts';
import type { Exchange } from './exchange.ts';
import { isAtTargets } from './ladder.ts';
import { noteDecision } from './note-decision.ts';
import type { Path } from './path.ts';
import { armTargets } from './release/arms.ts';
import { sessionPlace } from './session-place.ts';
import { isRoomFor } from './state/room.ts';
import type { Backend, Target } from './state/world.ts';

/** What is known of a request's way through the tiers of its route. */
export interface Tiering {
  /** The tier that it goes to now, and the one that its session belongs to. */
  tier: string | undefined;
  home: string;
  /** Why it goes there; and why its own tier was passed over, where it was. */
  code: string;
  passed: string | undefined;
  /** The value that says so. */
  setting: string;
  /** Tiers that it was turned away from, and targets that what it says cannot be put for. */
  left: string[];
  unfit: string[];
  /** The rung that this is about. */
  rung: number;
}

/** Narrows the targets of a request to those of one tier, as the rules of its route and the state of the tiers have it. */
export function chooseTier(path: Path, x: Exchange): void {
  if (x.only !== undefined || !isAtTargets(x)) return;
  const { clock, random } = path.deps;
  const now = clock.mono();
  const tiering = tieringOf(x);
  const targets = fitTargets(path, x, tiering);
  const { rules, loads } = x.route!.tiers!;
  const tiers = viewsOf(path, x, targets, now);
  if (tiers.length === 0) return;
  const place = sessionPlace(path.deps.world, x);
  const input = {
    priority: x.priority,
    promptTokens: x.cost.tokensIn,
    asked: x.askedTier,
    rules,
    loaded: loads.read(tiers, now),
    tiers,
    session: place?.home === undefined ? undefined : { home: place.home, at: place.tier ?? place.home },
    left: tiering.left,
  };
  const { choice, reason } = tierChoice.decide(input, now, random);
  const list = `routes.${x.route!.name}.tiers`;
  const setting = choice.rule === undefined ? list : `${list}[${choice.rule}]`;
  noteDecision(x, now, 'plan', { policy: tierChoice, reason, input, draws: [], setting });
  tiering.tier = choice.tier;
  tiering.home = choice.home;
  tiering.code = reason.code;
  tiering.passed = choice.passed;
  tiering.setting = setting;
  wakeHome(path, x, targets, choice.home);
  // Where no tier can be used, whatever comes back first may answer.
  x.targets =
    choice.tier === undefined ? targets : targets.filter((target) => tierOf(target) === choice.tier);
}

/** Another tier, for a request that does not get its place in this one; false where none is left. */
export function nextTier(path: Path, x: Exchange): boolean {
  const { tiering } = x;
  if (!tiering || tiering.tier === undefined || !isAtTargets(x)) return false;
  tiering.left.push(tiering.tier);
  const now = path.deps.clock.mono();
  const others = viewsOf(path, x, fitTargets(path, x, tiering), now).filter(
    ({ tier }) => !tiering.left.includes(tier),
  );
  if (now >= x.deadlineAt || !others.some(({ usable }) => usable)) return false;
  const cause = x.shedFor ?? x.failure?.code;
  path.step(
    x,
    'plan',
    'next-tier',
    { from: tiering.tier, ...(cause === undefined ? {} : { for: cause }) },
    tiering.setting,
  );
  path.plan(x, x.attemptsOfRung > 0);
  return true;
}

/** All of its route's targets again, for a request whose attempt failed: what can be tried next may be of another tier or arm. */
export function widen(path: Path, x: Exchange): void {
  if (!isAtTargets(x) || x.only !== undefined) return;
  if (x.tiering) x.targets = fitTargets(path, x, x.tiering);
  else if (x.armed) x.targets = armTargets(path, x);
}

function tieringOf(x: Exchange): Tiering {
  if (!x.tiering) {
    x.tiering = {
      tier: undefined,
      home: '',
      code: '',
      passed: undefined,
      setting: '',
      left: [],
      unfit: [],
      rung: x.rung,
    };
  } else if (x.tiering.rung !== x.rung) {
    x.tiering.rung = x.rung;
    x.tiering.left = [];
  }
  return x.tiering;
}

/** The targets of its route, or of its arm, whatever their tier, as the present snapshot has them; those left out that it cannot be put for. */
function fitTargets(path: Path, x: Exchange, { unfit }: Tiering): readonly Target[] {
  if (x.armed) return armTargets(path, x);
  const { world } = path.deps;
  const all = x.route!.targets[x.call!.protocol];
  const targets = world.snapshot === x.snapshot ? all : world.present(all);
  return unfit.length === 0 ? targets : targets.filter(({ name }) => !unfit.includes(name));
}

function tierOf({ backend }: Target): string {
  return backend.settings.tier ?? '';
}

function viewsOf(path: Path, x: Exchange, targets: readonly Target[], now: number): TierView[] {
  const workers = path.deps.world.snapshot?.settings.gateway.workers ?? 1;
  const names: string[] = [];
  for (const target of targets) if (!names.includes(tierOf(target))) names.push(tierOf(target));
  return names.map((tier) =>
    viewOf(
      x,
      tier,
      targets.filter((target) => tierOf(target) === tier),
      workers,
      now,
    ),
  );
}

function viewOf(
  x: Exchange,
  tier: string,
  targets: readonly Target[],
  workers: number,
  now: number,
): TierView {
  const mayWait = x.route!.tiers!.rules.some((rule) => rule.waitMax > 0);
  let used = 0;
  let places = 0;
  let [usable, room, fits, coming] = [false, false, false, false];
  let price: number | undefined;
  let waitMs: number | undefined;
  for (const { backend } of targets) {
    const { line, endpoints, host, settings } = backend;
    used += line.length;
    let here = false;
    let running = 0;
    let taken = 0;
    let awaited = false;
    for (const endpoint of endpoints) {
      if (endpoint.waitMs(now) > 0 || x.tried.includes(endpoint)) continue;
      here = true;
      taken += endpoint.inflight;
      running += endpoint.tokensInFlight;
      places += endpoint.limitOfShare(settings.limits.concurrency, workers);
      awaited ||= workers > 1 && endpoint.mayGetUnit(now);
    }
    usable ||= here;
    used += taken;
    const roomy = here && (awaited || (line.length === 0 && isRoomFor(x, backend, now)));
    room ||= roomy;
    if (mayWait && here && !roomy) {
      const ms = line.drain.waitMs(line.ahead(x, taken, running), now);
      waitMs = Math.min(waitMs ?? ms, ms);
    }
    coming ||= host?.coming(endpoints.length, now) ?? false;
    if (!here || !roomy || !mayFit(x, backend, now)) continue;
    fits = true;
    const own = settings.price && x.cost.tokensIn * settings.price.in + x.cost.tokensOut * settings.price.out;
    if (own !== undefined) price = Math.min(price ?? own, own);
  }
  // A host that is idle or starts is not full; a tier that cannot be used is.
  const load = places > 0 ? used / places : coming ? 0 : 1;
  return { tier, usable, room, waitMs: room ? undefined : waitMs, load, price, fits };
}

/** Whether its window and its usual times have room for the request, as far as they are known. */
function mayFit(x: Exchange, { settings, line }: Backend, now: number): boolean {
  const { tokensIn } = x.cost;
  const window = settings.context?.window;
  if (window !== undefined && tokensIn > window) return false;
  return (
    line.service.expected(serviceKind(x.call!), serviceSize(x.call!, x.cost), now).safeMs <=
    x.deadlineAt - now
  );
}

/** A host that is idle in the tier that it should have gone to is woken, if only for those who follow. */
function wakeHome(path: Path, x: Exchange, targets: readonly Target[], home: string): void {
  const { world } = path.deps;
  if (world.idleHosts === 0) return;
  for (const target of targets) {
    if (tierOf(target) === home && target.backend.host?.state === 'idle')
      world.wakeHost(target.backend, x.id);
  }
}
