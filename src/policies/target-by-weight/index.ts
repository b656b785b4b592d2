import { rendezvousScore } from '../../kernel/hash.ts';
import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

export interface TargetView {
  name: string;
  weight: number;
  /** Grows with how late it came to the route; and the model that it serves. Of a session's targets alone. */
  since?: number;
  model?: string;
}

export interface TargetInput {
  /** What keeps requests together; undefined where nothing does. */
  session: string | undefined;
  /** Targets that are well, of weight above 0, in the order of the file. One at least. */
  targets: readonly TargetView[];
  /** The target that answered the session last, and whether it stood in for another that was unwell. */
  last?: string;
  stoodIn?: boolean;
}

/** Chooses a target: by weight, or for a session always the same one while it is well, and none that came before its last. */
export const targetByWeight: Policy<TargetInput, string> = {
  name: 'target-by-weight',
  version: 2,
  decide(input: TargetInput, _now: number, random: Random): Decision<string> {
    const { targets, session } = input;
    if (targets.length === 1) return because(targets[0]!.name, 'only-target', targets.length);
    if (session !== undefined) {
      const own = bySession(session, targets);
      const kept = laterOne(input, own);
      if (kept) return because(kept.name, 'target-not-earlier', targets.length, own.name);
      return because(own.name, 'target-by-session', targets.length);
    }
    let left = random.next() * targets.reduce((sum, target) => sum + target.weight, 0);
    for (const target of targets) {
      left -= target.weight;
      if (left < 0) return because(target.name, 'target-by-weight', targets.length);
    }
    return because(targets.at(-1)!.name, 'target-by-weight', targets.length); // rounding
  },
};

/**
 * The last target of a session, where it came later than the one that weights give: a session goes forward only. One that
 * merely stood in is left again, unless that would be going back to another model.
 */
function laterOne({ targets, last, stoodIn }: TargetInput, own: TargetView): TargetView | undefined {
  if (last === undefined || last === own.name) return undefined;
  const before = targets.find(({ name }) => name === last);
  if (!before || (before.since ?? 0) <= (own.since ?? 0)) return undefined;
  return stoodIn && before.model === own.model ? undefined : before;
}

function bySession(session: string, targets: TargetInput['targets']): TargetView {
  let best = targets[0]!;
  let bestScore = -1;
  for (const target of targets) {
    const score = rendezvousScore(session, target.name, target.weight);
    if (score > bestScore) {
      best = target;
      bestScore = score;
    }
  }
  return best;
}

function because(choice: string, code: string, targets: number, own?: string): Decision<string> {
  return {
    choice,
    reason: { code, figures: { target: choice, targets, ...(own === undefined ? {} : { own }) } },
  };
}
