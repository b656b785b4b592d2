import type { Evidence } from '../../src/events/contracts.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { ReleaseArms } from '../../src/links/messages.ts';
import { armAt } from '../../src/policies/canary-arm/index.ts';
import type { ReleasePlan } from '../../src/releases/canary/contracts.ts';
import { CanaryMachine } from '../../src/releases/canary/machine.ts';
import type { Action } from '../../src/releases/contracts.ts';
import { Gatherer } from './gatherer.ts';
import { type Difference, GAP_MS, poisson, type Session, Traffic, type TrafficSettings } from './traffic.ts';

const TURN_MS = 1000;
const WORKERS = 2;
/** A day in 2026, so that times are what they are live. */
const BEGAN_MS = 1_780_000_000_000;

export interface ReleaseSettings {
  seed: number;
  traffic: TrafficSettings;
  difference: Difference;
  plan: Omit<ReleasePlan, 'id' | 'route' | 'canary'>;
  /** Changes the weights beside the plan: the share in force at a time, in milliseconds since the start. */
  weights?: (atMs: number, share: number) => number;
  /** Spoils what a worker tells: gives what comes instead, or nothing. */
  spoil?: (evidence: Evidence, random: { next(): number }) => Evidence | undefined;
}

export interface ReleaseEnd {
  how: 'promoted' | 'rolled-back';
  reason: Action['reason'];
  /** Requests that were meant for the canary until then. */
  canaryRequests: number;
  requests: number;
  hours: number;
  /** Reasons that it was held for, the last one last. */
  held: string[];
}

/** One release from its start until it is promoted and watched, or rolled back. */
export function simulateRelease(settings: ReleaseSettings): ReleaseEnd {
  const random = seededRandom(settings.seed);
  const id = `rel_${settings.seed}`;
  const traffic = new Traffic(settings.traffic, settings.difference, id, random);
  const machine = CanaryMachine.begin({ ...settings.plan, id, route: 'chat', canary: 'next' }, BEGAN_MS);
  const workers = Array.from({ length: WORKERS }, (_, worker) => new Gatherer(id, worker));
  const coming = new Map<number, Session[]>();
  const end: Omit<ReleaseEnd, 'how' | 'reason'> = { canaryRequests: 0, requests: 0, hours: 0, held: [] };
  let edges: ReleaseArms['edges'];
  let planned = 0;
  let promoted: { reason: Action['reason']; hours: number; canaryRequests: number } | undefined;
  for (let turn = 0; ; turn++) {
    const atMs = turn * TURN_MS;
    const share = settings.weights ? settings.weights(atMs, planned) : planned;
    const nowMs = BEGAN_MS + atMs + TURN_MS;
    for (const worker of workers) worker.onSnapshot(share, edges, nowMs - TURN_MS);
    const sessions = coming.get(turn) ?? [];
    coming.delete(turn);
    for (let i = poisson((traffic.sessionsPerSecond * TURN_MS) / 1000, random); i > 0; i--)
      sessions.push(traffic.session());
    for (const session of sessions) {
      const answered = traffic.answer(session, armAt(session.place, share));
      end.requests++;
      if (answered.arm === 'canary') end.canaryRequests++;
      workers[random.next() < 0.5 ? 0 : 1]!.add(answered, traffic);
      if (--session.left > 0) comeAgain(coming, turn, session, random);
    }
    const telling = workers.flatMap((worker) => worker.due(nowMs));
    for (const told of telling) {
      const evidence = settings.spoil ? settings.spoil(told, random) : told;
      if (evidence) machine.evidence({ event: `evt_${turn}`, evidence });
    }
    for (const action of telling.length > 0 || turn % 60 === 0 ? machine.advance(nowMs) : []) {
      machine.done(action, nowMs);
      end.hours = (nowMs - BEGAN_MS) / 3_600_000;
      if (action.do === 'hold') end.held.push(action.reason.code);
      else if (action.do === 'share') planned = action.share;
      else if (action.do === 'freeze') edges = action.edges;
      else if (action.do === 'roll-back') return { how: 'rolled-back', reason: action.reason, ...end };
      else {
        planned = 1;
        promoted = { reason: action.reason, hours: end.hours, canaryRequests: end.canaryRequests };
      }
    }
    if (promoted && turn % 60 === 0 && machine.report(nowMs).ended)
      return { how: 'promoted', ...end, ...promoted };
  }
}

/** A session's next request, in a later turn. */
function comeAgain(
  coming: Map<number, Session[]>,
  turn: number,
  session: Session,
  random: { next(): number },
) {
  const gapTurns = Math.max(1, Math.round((-Math.log(1 - random.next()) * GAP_MS) / TURN_MS));
  const at = coming.get(turn + gapTurns);
  if (at) at.push(session);
  else coming.set(turn + gapTurns, [session]);
}
