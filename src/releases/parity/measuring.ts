import type { Random } from '../../kernel/random.ts';
import { hammingKernel, mmdTest, type SamplesOfPrompt, shuffled } from '../statistics/sampled-texts.ts';
import type { GoldenAnswer } from './answers.ts';
import type { ParityFigures, ParityReason, ParityVerdict } from './contracts.ts';
import type { GoldenPrompt } from './golden.ts';
import { type Ask, inCompany, oneByOne } from './passes.ts';
import { type Screened, screen } from './screening.ts';
import { ParityTally, type ParityTerms } from './tally.ts';

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
/** The share of prompts that a reference may be unsure of; beyond it the rest says too little of what it decides. */
const LEFT_OUT_SHARE_MAX = 0.5;

/**
 * Samples prompts with a temperature; finds out which of the others the reference is sure of; asks it each of these alone, then it and
 * the backend in company, in random order, until the flips are decided or no prompt is left. Rejects only where a golden rule
 * does not fit the answers.
 */
export async function measure(measuring: Measuring): Promise<Measured> {
  const { prompts, terms, together, random, signal, onProgress } = measuring;
  const tally = new ParityTally(terms);
  const isSampled = ({ request }: GoldenPrompt) => Number(request['temperature'] ?? 0) > 0;
  await sample(prompts.filter(isSampled).slice(0, SAMPLED_PROMPTS_MAX), measuring, tally);
  const decisive = prompts.filter((prompt) => !isSampled(prompt));
  const onBlock = (screened: Screened) => {
    tally.screened(screened);
    onProgress?.(tally.figures);
    return signal.aborted || isMissing(screened.missing.length, screened.count);
  };
  const screened = await screen({ ...measuring, prompts: decisive, onBlock });
  const unfit = signal.aborted ? 'run-stopped' : unfitAfter(screened);
  if (unfit) return { verdict: 'undecided', reason: unfit, figures: tally.figures };
  const { leftOut, kept } = screened;
  // Right and wrong are told apart on the others as well, which neither certify nor reject by flips.
  const judged = [...leftOut.keys()].filter(({ label }) => label !== undefined);
  const order = shuffled([...kept, ...judged], random);
  for (let from = 0; from < order.length && !tally.decided; from += together) {
    const some = order.slice(from, from + together);
    for (const answers of await askAll(some, measuring)) {
      if ('cause' in answers) tally.skip(answers.cause);
      else if (leftOut.has(answers.prompt)) tally.judge(answers.prompt, answers.alone, answers.backend);
      else if (!tally.decided) tally.observe(answers.prompt, answers.alone, answers.again, answers.backend);
    }
    const { figures, skipped } = tally;
    if (signal.aborted) return { verdict: 'undecided', reason: 'run-stopped', figures };
    if (isMissing(skipped, figures.prompts))
      return { verdict: 'undecided', reason: 'answers-missing', figures };
    onProgress?.(figures);
  }
  return { ...tally.verdict, figures: tally.figures };
}

function isMissing(skipped: number, answered: number): boolean {
  return skipped > Math.max(SKIPPED_MIN, SKIPPED_SHARE_MAX * (answered + skipped));
}

function unfitAfter({ missing, leftOut, count }: Screened): ParityReason | undefined {
  if (isMissing(missing.length, count)) return 'answers-missing';
  return leftOut.size > LEFT_OUT_SHARE_MAX * count ? 'reference-unsure' : undefined;
}

type Answers =
  | { prompt: GoldenPrompt; alone: GoldenAnswer; again: GoldenAnswer; backend: GoldenAnswer }
  | { cause: string };

/** Gives what came, in the order of the prompts. */
async function askAll(
  prompts: readonly GoldenPrompt[],
  { reference, backend, together, signal }: Measuring,
): Promise<Answers[]> {
  const alone = await oneByOne(prompts, reference, signal);
  const again = await inCompany(prompts, reference, together, signal);
  const others = await inCompany(prompts, backend, together, signal);
  return prompts.map((prompt) => {
    const [first, second, other] = [alone.get(prompt), again.get(prompt), others.get(prompt)];
    if (!first || !second) return { cause: 'reference-failed' };
    if (first.refused !== undefined || second.refused !== undefined) return { cause: 'reference-refused' };
    return other ? { prompt, alone: first, again: second, backend: other } : { cause: 'backend-failed' };
  });
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
      const drawn = seeds.map((seed) => seeded(prompt, seed));
      const pass = await inCompany(drawn, ask, SAMPLES, signal);
      return [...pass.values()].flatMap((answer) => (answer.text === undefined ? [] : [unitsOf(answer)]));
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
