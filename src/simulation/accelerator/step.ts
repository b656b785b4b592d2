/** What an accelerator can do, as `profile` of a simulated backend says it. */
export interface AcceleratorProfile {
  prefillTokensPerSecond: number;
  /** Of one sequence alone. */
  decodeTokensPerSecond: number;
  /** Sequences that run together. */
  batchMax: number;
  /** Tokens that the running sequences may hold together, prompts and answers. */
  kvTokensMax: number;
  /** Milliseconds from its making to its first step. */
  coldStart: number;
  /** Share by which a step is longer or shorter, 0 to 1. */
  jitter: number;
  /** Shares of jobs, 0 to 1; together at most 1. */
  faults: { errorRate: number; resetRate: number; stallRate: number };
}

/** Tokens that one step takes at most, those of decoding sequences first; prompts are cut to fit in what is left. */
export const STEP_TOKENS_MAX = 2048;

/**
 * Milliseconds of one step that takes `prefillTokens` of prompts and one token each of `decodes` sequences.
 *
 * Formula: a step with a decoding sequence reads all weights once, which takes 1/D seconds; every further token, of a
 * prompt or of another sequence, adds the arithmetic of one token, 1/P seconds. So a prompt alone runs at P tokens a
 * second, a sequence alone at D, and a batch of b sequences at b / (1/D + (b-1)/P).
 * Source: see README.md.
 */
export function stepMs(profile: AcceleratorProfile, prefillTokens: number, decodes: number): number {
  const weights = decodes > 0 ? 1 / profile.decodeTokensPerSecond : 0;
  const arithmetic = (prefillTokens + Math.max(0, decodes - 1)) / profile.prefillTokensPerSecond;
  return (weights + arithmetic) * 1000;
}
