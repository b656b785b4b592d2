import { seededRandom } from '../../src/kernel/random.ts';
import type { GoldenAnswer } from '../../src/releases/parity/answers.ts';
import type { GoldenPrompt } from '../../src/releases/parity/golden.ts';
import { measure } from '../../src/releases/parity/measuring.ts';
import type { Ask } from '../../src/releases/parity/passes.ts';

/** One output, as a classifier gives it; the largest decides. */
export const scores = (...data: number[]): GoldenAnswer => ({
  outputs: [{ name: 'y', shape: [1, data.length], data }],
});
export const YES = scores(1, 0);
export const NO = scores(0, 1);

/** Measures a backend against a reference within a bound of 3 %. */
export const run = (prompts: GoldenPrompt[], reference: Ask, backend: Ask, more: object = {}) =>
  measure({
    prompts,
    reference,
    backend,
    terms: { flipsMax: 0.03, alpha: 0.05 },
    together: 8,
    random: seededRandom(1),
    signal: new AbortController().signal,
    ...more,
  });
