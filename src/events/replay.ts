import { isDeepStrictEqual } from 'node:util';
import { type Random, replayedRandom } from '../kernel/random.ts';
import type { Figure, RequestRecord, Step } from './contracts.ts';

/** A policy that can decide again; src/policies/register.ts has them. */
export interface ReplayablePolicy {
  version: number;
  /** Decides again on what was read then; gives a decision with its reason. */
  replay(input: unknown, random: Random): unknown;
}

export interface Replayed {
  /** Place in the record's steps. */
  step: number;
  policy: string;
  /** Whether the decision, taken again on the recorded input and draws, is the recorded one, bit by bit. */
  same: boolean;
  recorded: Reason;
  /** Absent where it could not be taken again; `problem` says why. */
  again?: Reason;
  problem?: string;
}

interface Reason {
  code: string;
  figures: Record<string, Figure>;
}

/** Takes every recorded decision of a request again that a policy took. */
export function replay(record: RequestRecord, policies: ReadonlyMap<string, ReplayablePolicy>): Replayed[] {
  return record.steps.flatMap((step, at) =>
    step.policy === undefined ? [] : [replayStep(step, at, policies)],
  );
}

function replayStep(step: Step, at: number, policies: ReadonlyMap<string, ReplayablePolicy>): Replayed {
  const [name = '', version] = step.policy!.split('@');
  const recorded = { code: step.code, figures: step.figures };
  const result = { step: at, policy: step.policy!, recorded };
  const policy = policies.get(name);
  if (!policy) return { ...result, same: false, problem: `there is no policy ${name} to decide again` };
  if (String(policy.version) !== version) {
    const problem = `${name} is at version ${policy.version} now, and decides differently`;
    return { ...result, same: false, problem };
  }
  const draws = countedRandom(step.draws ?? []);
  try {
    const { reason } = policy.replay(step.input, draws.random) as { reason: Reason };
    const again = { code: reason.code, figures: reason.figures };
    const unused = (step.draws?.length ?? 0) - draws.used();
    const problem = unused === 0 ? {} : { problem: `${unused} of the recorded draws were not drawn again` };
    return { ...result, same: unused === 0 && isDeepStrictEqual(again, recorded), again, ...problem };
  } catch (error) {
    return { ...result, same: false, problem: (error as Error).message };
  }
}

function countedRandom(draws: readonly number[]): { random: Random; used: () => number } {
  const replayed = replayedRandom(draws);
  let used = 0;
  const next = () => {
    const draw = replayed.next();
    used++;
    return draw;
  };
  return { random: { next }, used: () => used };
}
