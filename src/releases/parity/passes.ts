import type { GoldenAnswer } from './answers.ts';
import type { GoldenPrompt } from './golden.ts';

/** Asks a backend one golden prompt, at one of its endpoints in turn. Rejects where no answer can be had. */
export type Ask = (prompt: GoldenPrompt, signal: AbortSignal) => Promise<GoldenAnswer>;

/** What came of a pass over golden prompts; those without an answer are not in it. */
export type Pass = Map<GoldenPrompt, GoldenAnswer>;

/** Each when the one before it is over: every one is alone. */
export async function oneByOne(
  prompts: readonly GoldenPrompt[],
  ask: Ask,
  signal: AbortSignal,
): Promise<Pass> {
  return inCompany(prompts, ask, 1, signal);
}

/** So many at once, in the order of the prompts. */
export async function inCompany(
  prompts: readonly GoldenPrompt[],
  ask: Ask,
  together: number,
  signal: AbortSignal,
): Promise<Pass> {
  const pass: Pass = new Map();
  for (let from = 0; from < prompts.length; from += together) {
    const some = prompts.slice(from, from + together);
    const answers = await Promise.all(some.map((prompt) => ask(prompt, signal).catch(() => undefined)));
    for (const [i, prompt] of some.entries()) if (answers[i]) pass.set(prompt, answers[i]);
  }
  return pass;
}
