import type { Figure } from '../events/contracts.ts';
import type { Random } from '../kernel/random.ts';

/** Why a decision was taken: a code and the figures it was taken on. */
export interface Reason {
  code: string;
  figures: Record<string, Figure>;
  /** Path of the configuration value that mattered most. */
  setting?: string;
}

export interface Decision<Choice> {
  choice: Choice;
  reason: Reason;
}

/**
 * Code that decides and observes. `decide` is a pure function of its input, the state the policy owns and the draws;
 * it does no I/O. What it read is put into the record together with the draws, so that `replay` gives the same
 * decision bit by bit.
 */
export interface Policy<Input, Choice, Observation = never> {
  /** The name of its folder. */
  readonly name: string;
  /** Raised whenever the same input could be decided differently. */
  readonly version: number;
  decide(input: Input, now: number, random: Random): Decision<Choice>;
  observe?(event: Observation, now: number): void;
}
