/** What an accelerator can do, as `profile` of a simulated backend says it. */
export interface AcceleratorProfile {
  prefillTokensPerSecond: number;
  /** Of one sequence alone. */
  decodeTokensPerSecond: number;
  /** Of so many sequences that one more brings nothing; as fast as prompts are read, unless it is said. */
  decodeTokensPerSecondMax?: number | undefined;
  /** Tokens of one step at most; STEP_TOKENS_MAX unless it is said. */
  stepTokensMax?: number | undefined;
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

/** Tokens that one step takes, those of decoding sequences first; prompts are cut to fit in what is left. */
export const STEP_TOKENS_MAX = 2048;

/**
 * Milliseconds of one step that takes `prefillTokens` of prompts and one token each of `decodes` sequences.
 *
 * Formula: a step with a decoding sequence reads all weights once, which takes 1/D seconds; every further sequence adds its
 * own arithmetic, 1/M seconds, and every token of a prompt 1/P seconds. So a prompt alone runs at P tokens a second, a
 * sequence alone at D, and a batch of b sequences at b / (1/D + (b-1)/M), which is M where b is large.
 * Source: see README.md.
 */
export function stepMs(profile: AcceleratorProfile, prefillTokens: number, decodes: number): number {
  const { prefillTokensPerSecond, decodeTokensPerSecond, decodeTokensPerSecondMax } = profile;
  const weights = decodes > 0 ? 1 / decodeTokensPerSecond : 0;
  const timesPrefill = prefillTokensPerSecond / (decodeTokensPerSecondMax ?? prefillTokensPerSecond);
  const arithmetic = (prefillTokens + Math.max(0, decodes - 1) * timesPrefill) / prefillTokensPerSecond;
  return (weights + arithmetic) * 1000;
}
