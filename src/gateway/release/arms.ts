import type { Arm } from '../../events/contracts.ts';
import { canaryArm, sessionHash } from '../../policies/canary-arm/index.ts';
import { isAwaited } from '../cold-start.ts';
import { serviceKind, serviceSize } from '../cost.ts';
import type { Exchange } from '../exchange.ts';
import { isAtTargets, isPinned, isSequence } from '../ladder.ts';
import { noteDecision } from '../note-decision.ts';
import type { Path } from '../path.ts';
import { sessionPlace } from '../session-place.ts';
import { speaks } from '../state/targets.ts';
import type { Backend, Target, World } from '../state/world.ts';
import { type RouteRelease, standingBy } from './route-release.ts';

/** What a request of a route under release counts for, and how it has fared as far as its arm is concerned. */
export interface Armed {
  readonly release: RouteRelease;
  readonly arm: Arm;
  /** It goes to the canary whatever its arm: its session was answered there last. */
  readonly kept: boolean;
  /** What its session is told as; and whether it is a session of its own. */
  readonly session: number;
  readonly alone: boolean;
  /** Requests of one class are compared with each other; known before it is sent, so that it does not hang on the arm. */
  readonly sizeClass: string;
  /** False where what comes of it would tell of its arm's company or of kept answers, which are more where an arm is larger. */
  counts: boolean;
  /** It was to be sent. */
  planned: boolean;
  /** Another target stands in, as no endpoint of its arm can be used. */
  standsIn: boolean;
  /** It was not answered in full by its arm. */
  failed: boolean;
  /** Targets that what it says cannot be put for. */
  unfit: readonly string[];
}

/** Sizes of one class are within so many times. */
const CLASS_STEP = 4;
const CLASSES_MAX = 12;

/** Says which arm a request belongs to. Its cost must be known. */
export function assignArm(path: Path, x: Exchange, release: RouteRelease): void {
  if (x.charged === 'nothing' || !isDivided(x)) return;
  const { world, clock, random } = path.deps;
  const { id, share, canary } = release.arms;
  const route = x.route!;
  const session = x.placeKey?.slice(route.name.length + 1);
  const input = { release: id, session: session ?? x.id, share, canary, last: lastOf(world, x, canary) };
  const now = clock.mono();
  const { choice, reason } = canaryArm.decide(input, now, random);
  const setting = `routes.${route.name}.targets`;
  noteDecision(x, now, 'plan', { policy: canaryArm, reason, input, draws: [], setting });
  x.armed = {
    release,
    arm: choice.arm,
    kept: choice.kept,
    session: sessionHash(id, input.session),
    alone: session === undefined,
    sizeClass: sizeClassOf(x),
    counts: true,
    planned: false,
    standsIn: false,
    failed: false,
    unfit: [],
  };
}

/**
 * What is not told apart by arms goes by the weights of the targets: a sequence, whose state lies at one endpoint; a version
 * that is named; a question about a model.
 */
function isDivided(x: Exchange): boolean {
  const call = x.call!;
  return call.protocol === 'openai' || (call.kind === 'infer' && !isSequence(x) && !isPinned(x));
}

/** Not a backend that merely stood in, where the session can go back without another model. */
function lastOf(world: World, x: Exchange, canary: string): string | undefined {
  const place = sessionPlace(world, x);
  if (!place?.stoodIn) return place?.backend;
  const others = x.route!.targets[x.call!.protocol].filter(({ name }) => name !== canary);
  return others.some(({ backend }) => backend.model === place.model) ? undefined : place.backend;
}

function sizeClassOf({ call, cost }: Exchange): string {
  const step = Math.floor(Math.log(Math.max(1, serviceSize(call!, cost))) / Math.log(CLASS_STEP) + 1e-9);
  return `${serviceKind(call!)}/${CLASS_STEP ** Math.min(step, CLASSES_MAX - 1)}`;
}

/** What keeps requests of a route apart that are otherwise alike: only those for one arm go upstream together. */
export function armKey({ armed }: Exchange): string {
  if (!armed) return '';
  return armed.kept ? 'canary' : armed.arm;
}

/** The arm of a request that goes in place of several; they are of one arm. */
export function armOfCarrier({ armed }: Exchange): Armed | undefined {
  return armed && { ...armed, counts: true, planned: false, standsIn: false, failed: false, unfit: [] };
}

/** What came of the request that went in its place is what came of it. */
export function adoptFate(member: Armed, carrier: Armed | undefined): void {
  if (!carrier) return;
  member.planned = carrier.planned;
  member.standsIn = carrier.standsIn;
  member.failed ||= carrier.failed;
  member.counts &&= carrier.counts;
}

/** Narrows the targets of a request to those of its arm. */
export function chooseArm(path: Path, x: Exchange): void {
  if (x.only !== undefined || !isAtTargets(x)) return;
  x.armed!.planned = true;
  if (x.route!.tiers === undefined) x.targets = armTargets(path, x); // tiers are chosen among the targets of an arm
}

/**
 * The targets that a request may go to for its arm. Where none of them has an endpoint that can be used the others stand in;
 * once an attempt was made, whatever answers is welcome.
 */
export function armTargets(path: Path, x: Exchange): readonly Target[] {
  const { world, clock } = path.deps;
  const armed = x.armed!;
  const { canary, share } = armed.release.arms;
  const all = presentTargets(world, x);
  const own = ownTargets(world, x, all);
  const others =
    share === 1
      ? replacedTargets(world, x)
      : all.filter((target) => !own.includes(target) && (share > 0 || target.name !== canary));
  const isFit = ({ name }: Target) => !armed.unfit.includes(name);
  if (x.tried.length > 0) return [...own, ...others].filter(isFit);
  if (own.length === 0) return others.length > 0 ? others : all;
  const now = clock.mono();
  const fit = own.filter(isFit);
  const canAnswer = ({ backend }: Target) => backend.endpoints.some((endpoint) => endpoint.waitMs(now) === 0);
  if (fit.some((target) => canAnswer(target) || isAwaited(path, x, target.backend, now))) return fit;
  const standIns = others.filter(isFit);
  if (!standIns.some(canAnswer)) return fit;
  noteStandIn(path, x, own);
  return standIns;
}

function noteStandIn(path: Path, x: Exchange, own: readonly Target[]): void {
  const armed = x.armed!;
  if (armed.standsIn) return;
  armed.standsIn = true;
  armed.failed = true;
  const figures = { release: armed.release.arms.id, wanted: own.map(({ name }) => name).join(', ') };
  path.step(x, 'plan', 'arm-stands-in', figures);
  const causes = own.flatMap(({ backend }) => backend.endpoints.flatMap(({ cause }) => cause ?? []));
  if (causes.length > 0) x.steps.at(-1)!.causes = causes;
}

/** The targets of its route as the present snapshot has them: a release may have ended while it waited. */
function presentTargets(world: World, x: Exchange): readonly Target[] {
  const route = x.route!;
  const { protocol } = x.call!;
  const present = world.snapshot === x.snapshot ? route : world.routes.get(route.name);
  return present ? present.targets[protocol] : world.present(route.targets[protocol]);
}

/** What the canary has replaced. */
function replacedTargets(world: World, x: Exchange): Target[] {
  const { settings } = world.routes.get(x.route!.name) ?? x.route!;
  return standingBy(x.armed!.release, settings).flatMap((name) => {
    const backend = world.backends.get(name);
    return backend && canTake(backend, x) ? [{ name, weight: 1, backend }] : [];
  });
}

function canTake(backend: Backend, { call, route }: Exchange): boolean {
  const asTensors = call!.protocol === 'openai' && route!.settings.prepare?.to === 'tensors';
  return speaks(backend, asTensors ? 'oip' : call!.protocol);
}

function ownTargets(world: World, x: Exchange, all: readonly Target[]): readonly Target[] {
  const { arm, kept, release } = x.armed!;
  const { canary, baseline } = release.arms;
  if (kept || arm === 'canary') return all.filter(({ name }) => name === canary);
  if (arm === 'baseline' && baseline !== undefined) {
    const among = all.filter(({ name }) => name === baseline);
    const backend = world.backends.get(baseline);
    if (among.length > 0) return among;
    if (backend && canTake(backend, x)) return [{ name: baseline, weight: 1, backend }];
  }
  return all.filter(({ name }) => name !== canary);
}
