import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

export interface StartInput {
  /**
   * `running`: it serves, or will in a moment; `fetching`: its files have to come first; `failing`: it keeps dying;
   * `unknown`: nothing was told of it yet.
   */
  state: 'starting' | 'fetching' | 'failing' | 'running' | 'idle' | 'unknown';
  /** Milliseconds since its start began; below 0 before that. */
  startingMs: number;
  /** Milliseconds that its starts take, as measured; 0 where none was. */
  expectedMs: number;
  /** Milliseconds until the request's deadline. */
  deadlineMs: number;
}

/** Says whether a request waits for a host that is starting, by whether the start can be over within its deadline. */
export const coldStart: Policy<StartInput, boolean> = {
  name: 'cold-start',
  version: 1,
  decide(input: StartInput, _now: number, _random: Random): Decision<boolean> {
    const { state, startingMs, expectedMs, deadlineMs } = input;
    const leftMs = startLeftMs(input);
    const choice = isHeldFor(state) && leftMs <= deadlineMs;
    const code = choice ? 'held-for-start' : 'start-too-long';
    const figures = { state, startingMs, leftMs, deadlineMs, ...(expectedMs > 0 && { expectedMs }) };
    return { choice, reason: { code, figures } };
  },
};

/** Nobody is held for what cannot be predicted: a download, or the end of a row of deaths. */
export function isHeldFor(state: StartInput['state']): boolean {
  return state !== 'fetching' && state !== 'failing';
}

/** Milliseconds until a host is expected to serve. The formula is in README.md. */
export function startLeftMs({
  state,
  startingMs,
  expectedMs,
}: Pick<StartInput, 'state' | 'startingMs' | 'expectedMs'>): number {
  if (state === 'running') return 0;
  if (state === 'idle') return expectedMs;
  if (state === 'fetching') return Math.max(expectedMs, startingMs);
  return Math.abs(expectedMs - startingMs);
}
