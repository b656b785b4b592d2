import type { Arm } from '../../events/contracts.ts';
import { hash32, mix32 } from '../../kernel/hash.ts';
import type { Decision, Policy } from '../contracts.ts';

export interface ArmInput {
  /** `rel_...`: what the division is drawn by. */
  release: string;
  /** What keeps requests together, within its tenant; the request's own id where nothing does. */
  session: string;
  /** Share of the sessions that the canary answers, 0 to 1. */
  share: number;
  /** The backend that is released. */
  canary: string;
  /** The backend that answered the session last, where that is known and was not merely standing in. */
  last?: string | undefined;
}

export interface ArmChoice {
  /** What the session counts for, wherever it goes. */
  arm: Arm;
  /** It goes to the canary, whatever its arm: there it was answered last. */
  kept: boolean;
}

/** Divides the sessions of a route under release into the canary's, as many that it is compared with, and the rest. */
export const canaryArm: Policy<ArmInput, ArmChoice> = {
  name: 'canary-arm',
  version: 1,
  decide({ release, session, share, canary, last }: ArmInput): Decision<ArmChoice> {
    const arm = armOf(release, session, share);
    const kept = arm !== 'canary' && share > 0 && last === canary;
    const code = kept ? 'canary-not-earlier' : `${arm}-by-session`;
    return { choice: { arm, kept }, reason: { code, figures: { release, canary, share, arm } } };
  },
};

/**
 * The arm of a session while the canary has this share: of its place u in [0, 1), the canary has what is below the share, and
 * baseline as much from the other end. So a session that is in one of both stays there as the share grows to a half, and the
 * canary's for ever.
 */
export function armOf(release: string, session: string, share: number): Arm {
  return armAt(placeOf(release, session), share);
}

/** The same of a session whose place is known. */
export function armAt(place: number, share: number): Arm {
  if (place < share) return 'canary';
  return place >= 1 - Math.min(share, 1 - share) ? 'baseline' : 'stable';
}

/** Where a session stands in a release, in [0, 1): the same on every worker, and another in every release. */
export function placeOf(release: string, session: string): number {
  return hash32(`${release}\u0000${session}`) / 2 ** 32;
}

/** What a session is told as: 32 bits that have nothing to do with its place. */
export function sessionHash(release: string, session: string): number {
  return mix32(hash32(`told\u0000${session}\u0000${release}`) ^ 0x9e3779b9);
}
