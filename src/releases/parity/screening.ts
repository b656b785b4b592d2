import type { Random } from '../../kernel/random.ts';
import { shuffled } from '../statistics/sampled-texts.ts';
import type { GoldenAnswer } from './answers.ts';
import { compare } from './comparing.ts';
import type { ParityFigures } from './contracts.ts';
import { decide } from './decisions.ts';
import type { GoldenPrompt } from './golden.ts';
import { type Ask, inCompany, oneByOne } from './passes.ts';

export interface Screening {
  prompts: readonly GoldenPrompt[];
  reference: Ask;
  together: number;
  random: Random;
  signal: AbortSignal;
  /** Told after each block; true ends it. */
  onBlock(screened: Screened): boolean;
}

type Left = 'differs' | 'near-tie';

/** How often each prompt is asked in company, each time in another, besides alone. */
const PASSES = 2;
/** So many companies of prompts are mixed with each other: their answers are held at once. */
const BLOCK = 4;
/** Prompts that are listed by name. */
const LISTED_MAX = 100;

/** What a reference shows of how sure it is of its decisions on golden prompts. Knows nothing of what is compared with it. */
export class Screened {
  /** What its scores move by from one pass to another, at most, by kind and rule: those of one kind are comparable. */
  readonly deltas = new Map<string, number>();
  readonly #looked: { prompt: GoldenPrompt; differs: boolean; margin: number }[] = [];
  readonly missing: ('reference-failed' | 'reference-refused' | 'reference-empty')[] = [];

  look(prompt: GoldenPrompt, alone: GoldenAnswer, others: readonly GoldenAnswer[]): void {
    const found = others.map((other) => compare(prompt, alone, other));
    const margins = [alone, ...others].map((answer) => decide(prompt.decision, answer).margin);
    const kind = scoreKind(prompt);
    for (const { delta = 0 } of found) this.deltas.set(kind, Math.max(this.deltas.get(kind) ?? 0, delta));
    this.#looked.push({
      prompt,
      differs: found.some(({ flip }) => flip),
      margin: Math.min(...margins.map((margin) => margin ?? Number.POSITIVE_INFINITY)),
    });
  }

  get count(): number {
    return this.#looked.length;
  }

  /** Why a prompt is left out: by the deltas of all that was looked at. */
  get leftOut(): Map<GoldenPrompt, Left> {
    const left = new Map<GoldenPrompt, Left>();
    for (const { prompt, differs, margin } of this.#looked) {
      if (differs) left.set(prompt, 'differs');
      else if (margin <= 2 * this.deltas.get(scoreKind(prompt))!) left.set(prompt, 'near-tie');
    }
    return left;
  }

  get kept(): GoldenPrompt[] {
    const left = this.leftOut;
    return this.#looked.flatMap(({ prompt }) => (left.has(prompt) ? [] : [prompt]));
  }

  get figures(): NonNullable<ParityFigures['screened']> {
    const left = [...this.leftOut];
    const differ = left.filter(([, why]) => why === 'differs').length;
    return {
      prompts: this.count,
      differ,
      nearTies: left.length - differ,
      leftOut: left.slice(0, LISTED_MAX).map(([{ id }]) => id),
    };
  }
}

/** Scores of one kind and rule are comparable. */
export const scoreKind = ({ kind, decision }: GoldenPrompt) => `${kind} ${decision.by}`;

/**
 * Asks a reference each prompt alone and several times in company, in another company each time. What it decides on one of these
 * otherwise than on another, or by a margin of at most twice what its own scores move by (near ties, screen C1 of the table of
 * algorithms), it is not sure of.
 */
export async function screen(screening: Screening): Promise<Screened> {
  const { prompts, reference, together, random, signal, onBlock } = screening;
  const screened = new Screened();
  const order = shuffled([...prompts], random);
  for (let from = 0; from < order.length; from += BLOCK * together) {
    const block = order.slice(from, from + BLOCK * together);
    const alone = await oneByOne(block, reference, signal);
    const others: Map<GoldenPrompt, GoldenAnswer>[] = [];
    for (let pass = 0; pass < PASSES; pass++)
      others.push(await inCompany(shuffled([...block], random), reference, together, signal));
    for (const prompt of block) {
      const first = alone.get(prompt);
      const found = others.flatMap((pass) => pass.get(prompt) ?? []);
      if (!first || found.length < PASSES) screened.missing.push('reference-failed');
      else if ([first, ...found].some(({ refused }) => refused !== undefined))
        screened.missing.push('reference-refused');
      // Two that say nothing are not alike in what they mean: a model may have spent its tokens on reasoning alone.
      else if (first.text?.trim() === '') screened.missing.push('reference-empty');
      else screened.look(prompt, first, found);
    }
    if (onBlock(screened)) break;
  }
  return screened;
}
