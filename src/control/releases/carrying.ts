import { ApiFault } from '../../api/contracts.ts';
import type { Target } from '../../config/redirect.ts';
import { sameTargets } from '../../config/targets.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { Action } from '../../releases/contracts.ts';
import { workersBehind } from '../worker-states.ts';
import { lacking, readied } from './capacity.ts';
import type { Intent, ReleaseControl, ReleaseDocument } from './contracts.ts';
import { dividedTargets } from './slices.ts';

/** How long an idle or starting host is waited for before a step is put off. */
const CAPACITY_MS = 60_000;
/** How long workers may take to report a snapshot before a step is told as one that they are behind with. */
const WORKERS_MS = 10_000;

/** What is in force of a release: what the next snapshot divides its sessions by. */
export interface InForce {
  share: number;
  edges?: ReleaseDocument['edges'];
  /** Sessions are not divided any more. */
  restored: boolean;
  /** Why the targets of the file stay, where what was captured is not put back. */
  left?: string;
}

export interface Carrying {
  id: string;
  body: Readonly<ReleaseDocument>;
  intent: Intent;
  control: ReleaseControl;
  timers: Timers;
  inForce: InForce;
  /** Ends waiting: another action takes the place of this one, or whoever gave the word gives it again. */
  signal: AbortSignal;
  /** Somebody's word, that goes over what a release would not do by itself. */
  byHand: boolean;
}

export type Carried =
  | { done: true; figures: Record<string, unknown>; causes: string[] }
  /** Not now: to be tried again, for this reason, unless another action has taken its place. */
  | { done: false; reason?: Action['reason'] };

/**
 * Carries out what was decided: capacity, then weights and arms, then it is seen that the workers have them. Carried out
 * again it changes nothing. Rejects with a StoreError where something cannot be stored.
 */
export function carryOut(carrying: Carrying): Promise<Carried> {
  const { action } = carrying.intent;
  switch (action.do) {
    case 'share':
      return divide(carrying, action.share);
    case 'promote':
      return divide(carrying, 1);
    case 'freeze':
      return freeze(carrying, action.edges);
    case 'roll-back':
      return rollBack(carrying);
    case 'hold':
      return Promise.resolve({ done: true, figures: {}, causes: [] });
  }
}

async function divide(carrying: Carrying, share: number): Promise<Carried> {
  const { id, body, control, timers, inForce, signal, intent } = carrying;
  const { to, captured } = body;
  if (share > 0) {
    const cause = { event: intent.event, release: id };
    const left = await readied([to], cause, { control, timers, withinMs: CAPACITY_MS, signal });
    if (signal.aborted) return { done: false };
    if (left.length > 0)
      return { done: false, reason: { code: 'release-capacity-wanting', figures: { backend: to } } };
  }
  const before = inForce.share;
  const targets = dividedTargets(captured, to, share);
  inForce.share = share;
  const refused = await redirected(carrying, targets, false);
  if (refused === undefined) return verified(carrying, targets, { from: before, share });
  inForce.share = before;
  return { done: false, reason: { code: 'release-redirect-refused', figures: { message: refused } } };
}

function freeze(carrying: Carrying, edges: InForce['edges']): Promise<Carried> {
  carrying.inForce.edges = edges;
  return renewed(carrying, {});
}

/**
 * Back to what was captured, whatever the files say by now. What is to answer is woken first. Where all of it is unwell and
 * the canary is not, the only healthy copy stays, unless somebody gave the word.
 */
async function rollBack(carrying: Carrying): Promise<Carried> {
  const { id, body, control, timers, inForce, signal, byHand, intent } = carrying;
  const { route, to, overtaken } = body;
  if (overtaken && !byHand) return leave(carrying, 'it was edited');
  const { routes, backends: existing } = control.effective.settings;
  if (!routes[route]) return leave(carrying, 'the route is not there any more');
  // Without a backend that has been removed since, the others of what was captured are still a way back.
  const captured = body.captured.filter(({ backend }) => existing[backend]);
  const backends = captured.filter(({ weight }) => weight > 0).map(({ backend }) => backend);
  const removed = body.captured.flatMap(({ backend }) => (existing[backend] ? [] : [backend])).join(', ');
  if (backends.length === 0)
    return leave(carrying, `of what the route had there is nothing any more: ${removed}`);
  const cause = { event: intent.event, release: id };
  const left = await readied(backends, cause, { control, timers, withinMs: CAPACITY_MS, signal });
  const onlyCanary =
    left.length === backends.length && inForce.share > 0 && lacking([to], control).length === 0;
  if (onlyCanary && !byHand)
    return {
      done: false,
      reason: { code: 'release-stable-wanting', figures: { backends: backends.join(', ') } },
    };
  inForce.restored = true;
  const refused = await redirected(carrying, captured, true);
  // What was captured cannot be any more: the files are what is left.
  if (refused !== undefined)
    return leave(carrying, `with what it had the configuration is not valid: ${refused}`);
  return verified(carrying, captured, {
    from: inForce.share,
    ...(left.length > 0 && { unready: left.join(', ') }),
    ...(removed !== '' && { removed }),
  });
}

/** What the files say stays: sessions are not divided any more, and that is all. */
function leave(carrying: Carrying, why: string): Promise<Carried> {
  Object.assign(carrying.inForce, { restored: true, left: why });
  return renewed(carrying, { left: why });
}

/** What is in force is published, beside whatever targets the route has. */
async function renewed(
  { intent, control, timers }: Carrying,
  more: Record<string, unknown>,
): Promise<Carried> {
  await control.renewSnapshot([intent.event]);
  const { figures, causes } = await seen(control, timers);
  return { done: true, causes, figures: { ...figures, ...more } };
}

/** Gives why it is refused, where it is. */
async function redirected(
  { id, body, intent, control }: Carrying,
  targets: readonly Target[],
  overFile: boolean,
): Promise<string | undefined> {
  const { actor, event } = intent;
  try {
    await control.redirect({ route: body.route, targets, release: id, actor, overFile }, [event]);
    return undefined;
  } catch (error) {
    if (error instanceof ApiFault) return error.message;
    throw error;
  }
}

/** The published route has to be what was wanted: a file that was read meanwhile may say something else. */
async function verified(
  { body, control, timers }: Carrying,
  wanted: readonly Target[],
  more: Record<string, unknown>,
): Promise<Carried> {
  const published = control.snapshots.current.settings.routes[body.route]?.targets;
  if (!sameTargets(published, wanted)) return { done: false };
  const { figures, causes } = await seen(control, timers);
  return { done: true, causes, figures: { ...more, ...figures } };
}

async function seen(
  control: ReleaseControl,
  timers: Timers,
): Promise<Omit<Extract<Carried, { done: true }>, 'done'>> {
  const { number, event } = control.snapshots.current;
  const behind = await workersBehind(number, control.gateways, timers, WORKERS_MS);
  return { figures: { snapshot: number, ...(behind.length > 0 && { behind }) }, causes: [event] };
}
