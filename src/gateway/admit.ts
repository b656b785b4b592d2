import type { Step } from '../events/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { type Priority, priorities } from '../kernel/priorities.ts';
import type { Exchange } from './exchange.ts';
import { isSequence } from './ladder.ts';
import { deadlineSetting, type World } from './state/world.ts';

const SESSION_CHARACTERS_MAX = 512;
/** Headers that are decided on: given twice, two readers could take different ones. */
const ASKED_ONCE = ['x-armature-priority', 'x-armature-deadline-ms', 'x-armature-session', 'x-armature-tier'];

/** Settles what a request may take: its priority, its deadline, its session. A failure is a header that cannot be read. */
export function admit(x: Exchange, world: World): Failure | undefined {
  const { caller } = x;
  for (const name of ASKED_ONCE) {
    if (caller.headerCount(name) > 1) return badHeader(name, 'it is given twice');
  }
  const { terms } = x;
  if (terms && terms.charged !== 'request') x.charged = terms.charged;
  const own = world.tenants?.get(x.tenant)?.priority;
  const priority = terms?.priority ?? admitPriority(caller.header('x-armature-priority'), own);
  if (priority === undefined)
    return badHeader('x-armature-priority', `expected one of ${priorities.join(', ')}`);
  x.priority = priority;
  x.share = world.tenants?.get(x.tenant)?.share ?? 1;

  const route = x.route!.settings;
  const asked = caller.header('x-armature-deadline-ms');
  if (asked !== undefined && !/^[1-9]\d{0,19}$/.test(asked)) {
    return badHeader('x-armature-deadline-ms', 'expected a whole number of milliseconds above 0');
  }
  const deadlineMs = asked === undefined ? route.deadline : Math.min(route.deadline, Number(asked));
  x.deadlineAt = terms?.deadlineAt ?? x.startedAt + deadlineMs;

  const named = sessionOf(x);
  const session = route.affinity === 'session' || isSequence(x) ? named : undefined;
  x.session = terms ? terms.session : session === undefined ? undefined : `${x.tenant}/${session}`;
  if (x.route!.remembers) {
    const key = terms?.session ?? (named === undefined ? undefined : `${x.tenant}/${named}`);
    if (key !== undefined) x.placeKey = `${x.route!.name}\u0000${key}`;
  }
  if (x.route!.tiers) {
    const tier = caller.header('x-armature-tier') || world.tenants?.get(x.tenant)?.tier;
    if (tier !== undefined && !world.tiers.has(tier)) {
      return badHeader('x-armature-tier', `expected one of ${[...world.tiers].join(', ')}`);
    }
    x.askedTier = tier;
  }
  const figures: Step['figures'] = { priority, deadlineMs: Math.round(x.deadlineAt - x.startedAt) };
  if (session !== undefined) figures['session'] = session.slice(0, 64);
  x.steps.push({
    at: 0,
    what: 'admit',
    code: 'admitted',
    figures,
    setting: deadlineSetting(x.route!),
  });
  return undefined;
}

/** Never above the tenant's own. The open tenant may ask for any. */
function admitPriority(asked: string | undefined, own: Priority | undefined): Priority | undefined {
  if (asked === undefined) return own ?? 'standard';
  const rank = priorities.indexOf(asked as Priority);
  if (rank < 0) return undefined;
  return priorities[Math.max(rank, own === undefined ? 0 : priorities.indexOf(own))];
}

/** What its caller says keeps it with others, whether or not its route keeps them together. */
export function sessionOf(x: Exchange): string | undefined {
  const header = x.caller.header('x-armature-session');
  const call = x.call!;
  if (call.protocol === 'oip' && call.request?.sequence) return `sequence:${call.request.sequence.id}`;
  const named =
    header || (call.protocol === 'openai' ? (call.request.promptCacheKey ?? call.request.user) : undefined);
  if (named === undefined || named === '') return undefined;
  return named.slice(0, SESSION_CHARACTERS_MAX);
}

function badHeader(name: string, expected: string): Failure {
  return {
    code: 'invalid_request',
    message: `The header '${name}' cannot be read: ${expected}.`,
    phase: 'before-queue',
    param: name,
  };
}
