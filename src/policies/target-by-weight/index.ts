import { rendezvousScore } from '../../kernel/hash.ts';
import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

export interface TargetInput {
  /** What keeps requests together; undefined where nothing does. */
  session: string | undefined;
  /** Targets that are well, of weight above 0, in the order of the file. One at least. */
  targets: readonly { name: string; weight: number }[];
}

/** Chooses a target: by weight, or for a session always the same one while it is well. */
export const targetByWeight: Policy<TargetInput, string> = {
  name: 'target-by-weight',
  version: 1,
  decide(input: TargetInput, _now: number, random: Random): Decision<string> {
    const { targets, session } = input;
    if (targets.length === 1) return because(targets[0]!.name, 'only-target', targets.length);
    if (session !== undefined)
      return because(bySession(session, targets), 'target-by-session', targets.length);
    let left = random.next() * targets.reduce((sum, target) => sum + target.weight, 0);
    for (const target of targets) {
      left -= target.weight;
      if (left < 0) return because(target.name, 'target-by-weight', targets.length);
    }
    return because(targets.at(-1)!.name, 'target-by-weight', targets.length); // rounding
  },
};

function bySession(session: string, targets: TargetInput['targets']): string {
  let best = targets[0]!;
  let bestScore = -1;
  for (const target of targets) {
    const score = rendezvousScore(session, target.name, target.weight);
    if (score > bestScore) {
      best = target;
      bestScore = score;
    }
  }
  return best.name;
}

function because(choice: string, code: string, targets: number): Decision<string> {
  return { choice, reason: { code, figures: { target: choice, targets } } };
}
