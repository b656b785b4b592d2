import type { Step } from '../events/contracts.ts';
import type { Reason } from '../policies/contracts.ts';
import type { Exchange } from './exchange.ts';

/** What a decision was taken by, and all that it was taken on: enough to take it again. */
export interface Taken {
  policy: { name: string; version: number };
  reason: Reason;
  input: unknown;
  draws: number[];
  setting: string;
}

/** How a record names the policy that decided. */
export function named({ name, version }: Taken['policy']): string {
  return `${name}@${version}`;
}

/** Adds a policy's decision to the record of a request. */
export function noteDecision(x: Exchange, now: number, what: Step['what'], taken: Taken): Step {
  const { policy, reason, input, draws, setting } = taken;
  const step: Step = {
    at: now - x.startedAt,
    what,
    code: reason.code,
    figures: reason.figures,
    policy: named(policy),
    input,
    draws,
    setting,
  };
  x.steps.push(step);
  return step;
}
