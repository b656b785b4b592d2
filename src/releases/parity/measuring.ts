import type { Random } from '../../kernel/random.ts';
import { hammingKernel, mmdTest, type SamplesOfPrompt, shuffled } from '../statistics/sampled-texts.ts';
import type { GoldenAnswer } from './answers.ts';
import type { ParityFigures, ParityReason, ParityVerdict } from './contracts.ts';
import type { GoldenPrompt } from './golden.ts';
import { ParityTally, type ParityTerms } from './tally.ts';

/** Asks a backend one golden prompt, at one of its endpoints in turn. Rejects where no answer can be had. */
export type Ask = (prompt: GoldenPrompt, signal: AbortSignal) => Promise<GoldenAnswer>;

export interface Measuring {
  prompts: readonly GoldenPrompt[];
  reference: Ask;
  backend: Ask;
  terms: ParityTerms;
  /** Requests at once where the engines are asked in company: a flag that promises the same answers is not believed. */
  together: number;
  random: Random;
  signal: AbortSignal;
  onProgress?: (figures: ParityFigures) => void;
}

export interface Measured {
  verdict: ParityVerdict;
  reason: ParityReason;
  figures: ParityFigures;
}

/** Prompts without an answer beyond which nothing is decided: this share, and this many at least. */
const SKIPPED_SHARE_MAX = 0.1;
const SKIPPED_MIN = 5;
/** Of prompts with a temperature: how many are sampled, and how often each. */
const SAMPLED_PROMPTS_MAX = 50;
const SAMPLES = 10;

/**
 * Asks the reference each prompt alone, then it and the backend in company, in random order, until the flips are decided or
 * no prompt is left. Prompts with a temperature are sampled first. Rejects only where a golden rule does not fit the answers.
 */
export async function measure(measuring: Measuring): Promise<Measured> {
  const { prompts, terms, together, random, signal, onProgress } = measuring;
  const tally = new ParityTally(terms);
  const isSampled = ({ request }: GoldenPrompt) => Number(request['temperature'] ?? 0) > 0;
  await sample(prompts.filter(isSampled).slice(0, SAMPLED_PROMPTS_MAX), measuring, tally);
  const order = shuffled(
    prompts.filter((prompt) => !isSampled(prompt)),
    random,
  );
  for (let from = 0; from < order.length && !tally.decided; from += together) {
    for (const answers of await askAll(order.slice(from, from + together), measuring)) {
      if ('cause' in answers) tally.skip(answers.cause);
      else if (!tally.decided) tally.observe(answers.prompt, answers.alone, answers.again, answers.backend);
    }
    const { figures, skipped } = tally;
    if (signal.aborted) return { verdict: 'undecided', reason: 'run-stopped', figures };
    if (skipped > Math.max(SKIPPED_MIN, SKIPPED_SHARE_MAX * (figures.prompts + skipped)))
      return { verdict: 'undecided', reason: 'answers-missing', figures };
    onProgress?.(figures);
  }
  return { ...tally.verdict, figures: tally.figures };
}

type Answers =
  | { prompt: GoldenPrompt; alone: GoldenAnswer; again: GoldenAnswer; backend: GoldenAnswer }
  | { cause: string };

/** Gives what came, in the order of the prompts. */
async function askAll(
  prompts: readonly GoldenPrompt[],
  { reference, backend, signal }: Measuring,
): Promise<Answers[]> {
  const alone: (GoldenAnswer | undefined)[] = [];
  for (const prompt of prompts) alone.push(await orNothing(reference(prompt, signal)));
  const again = await Promise.all(prompts.map((prompt) => orNothing(reference(prompt, signal))));
  const others = await Promise.all(prompts.map((prompt) => orNothing(backend(prompt, signal))));
  return prompts.map((prompt, i) => {
    const [first, second, other] = [alone[i], again[i], others[i]];
    if (!first || !second) return { cause: 'reference-failed' };
    if (first.refused !== undefined || second.refused !== undefined) return { cause: 'reference-refused' };
    return other ? { prompt, alone: first, again: second, backend: other } : { cause: 'backend-failed' };
  });
}

function orNothing(answer: Promise<GoldenAnswer>): Promise<GoldenAnswer | undefined> {
  return answer.catch(() => undefined);
}

async function sample(
  prompts: readonly GoldenPrompt[],
  { reference, backend, random, signal }: Measuring,
  tally: ParityTally,
): Promise<void> {
  const all: SamplesOfPrompt[] = [];
  for (const prompt of prompts) {
    const seeds = Array.from({ length: SAMPLES }, () => Math.floor(random.next() * 2 ** 31));
    const draw = async (ask: Ask) => {
      const answers = await Promise.all(seeds.map((seed) => orNothing(ask(seeded(prompt, seed), signal))));
      return answers.flatMap((answer) => (answer?.text === undefined ? [] : [unitsOf(answer)]));
    };
    const [a, b] = [await draw(reference), await draw(backend)];
    if (signal.aborted) return;
    if (a.length < SAMPLES || b.length < SAMPLES) tally.skip('samples-missing');
    else all.push({ a, b });
  }
  const found = mmdTest(all, random);
  if (!found) return;
  const alike = all.flatMap(({ a, b }) => a.map((one, i) => hammingKernel(one, b[i]!)));
  tally.sampled({ ...found, tokensAlike: alike.reduce((sum, each) => sum + each, 0) / alike.length });
}

const seeded = (prompt: GoldenPrompt, seed: number): GoldenPrompt => ({
  ...prompt,
  request: { ...prompt.request, seed },
});

function unitsOf({ tokens, text = '' }: GoldenAnswer): string[] {
  return tokens ? tokens.map((token) => token.text) : text.split(/\s+/);
}
