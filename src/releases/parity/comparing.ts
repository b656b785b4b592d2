import { divergence, variation } from '../statistics/distances.ts';
import type { GoldenAnswer, ToldToken } from './answers.ts';
import { cosine, decide, marginAt, outputOf } from './decisions.ts';
import type { GoldenPrompt } from './golden.ts';

/** How two answers to one prompt differ. */
export interface Comparison {
  flip: boolean;
  reference: string;
  other: string;
  /** By how much the reference decided; of texts that flip, at the place where they part. Absent where it does not tell. */
  margin?: number;
  /** The greatest difference of one score: log-probabilities, values of the output that decides, likenesses of embeddings. */
  delta?: number;
  /** Of texts: tokens (words where an engine tells none) up to the first that differs, that one included. */
  exposed: number;
  /** The place of the first that differs, 0 the first. */
  position?: number;
  /** At places up to there, where both tell what is likeliest: the reference's distribution against the other's. */
  distances: { divergence: number; variation: number; sameTop: boolean }[];
}

/**
 * Compares up to the first mismatch only: until then both were asked for the same token after the same text, as if the
 * reference's answer had been forced on the other; beyond it they answer different questions.
 */
export function compare(prompt: GoldenPrompt, reference: GoldenAnswer, other: GoldenAnswer): Comparison {
  const [a, b] = [decide(prompt.decision, reference), decide(prompt.decision, other)];
  const flip = a.decision !== b.decision;
  const along = alongTexts(reference, other);
  const delta = largestDelta(prompt, reference, other, along.same);
  const isToken = reference.tokens !== undefined && other.tokens !== undefined;
  const parting = isToken && along.position !== undefined ? marginAt(reference, along.position) : undefined;
  const margin = (flip ? parting : undefined) ?? a.margin;
  return {
    flip,
    reference: a.decision,
    other: b.decision,
    exposed: along.exposed,
    distances: along.distances,
    ...(along.position !== undefined && { position: along.position }),
    ...(margin !== undefined && { margin }),
    ...(delta !== undefined && { delta }),
  };
}

interface Along extends Pick<Comparison, 'exposed' | 'position' | 'distances'> {
  /** Places at which both have the same token. */
  same: number;
}

function alongTexts(reference: GoldenAnswer, other: GoldenAnswer): Along {
  const [a, b] = unitsOf(reference, other);
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) same++;
  const parted = same < a.length || same < b.length;
  const exposed = same + (parted ? 1 : 0);
  const told = reference.tokens && other.tokens ? exposed : 0;
  const distances = Array.from({ length: told }, (_, i) => between(reference.tokens?.[i], other.tokens?.[i]));
  return { same, exposed, ...(parted && { position: same }), distances: distances.flat() };
}

/** Tokens where both tell them, else words. */
function unitsOf(a: GoldenAnswer, b: GoldenAnswer): [string[], string[]] {
  if (a.tokens && b.tokens) return [a.tokens.map(({ text }) => text), b.tokens.map(({ text }) => text)];
  const words = ({ text = '' }: GoldenAnswer) => text.split(/\s+/).filter((word) => word !== '');
  return [words(a), words(b)];
}

/** Over the tokens that both name; all others are one outcome more. */
function between(a: ToldToken | undefined, b: ToldToken | undefined): Comparison['distances'] {
  if (!a || !b || a.top.length < 2 || b.top.length < 2) return [];
  const others = new Map(b.top.map(({ text, logprob }) => [text, Math.exp(logprob)]));
  const common = a.top.filter(({ text }) => others.has(text));
  const p = common.map(({ logprob }) => Math.exp(logprob));
  const q = common.map(({ text }) => others.get(text)!);
  // Of rounded parts it may come out a little under zero.
  const sameTop = a.top[0]!.text === b.top[0]!.text;
  return [{ divergence: Math.max(0, divergence(p, q)), variation: variation(p, q), sameTop }];
}

function largestDelta(
  { decision }: GoldenPrompt,
  a: GoldenAnswer,
  b: GoldenAnswer,
  same: number,
): number | undefined {
  const deltas: number[] = [];
  for (let i = 0; i < same && a.tokens && b.tokens; i++)
    deltas.push(Math.abs(a.tokens[i]!.logprob - b.tokens[i]!.logprob));
  if (a.outputs && b.outputs) {
    const [values, others] = [outputOf(a, decision).data, outputOf(b, decision).data];
    for (const [i, value] of values.entries()) deltas.push(Math.abs(value - (others[i] ?? Number.NaN)));
  }
  for (let i = 1; i < (a.vectors?.length ?? 0); i++) {
    const like = (vectors: number[][] = []) => cosine(vectors[0] ?? [], vectors[i] ?? []);
    deltas.push(Math.abs(like(a.vectors) - like(b.vectors)));
  }
  const known = deltas.filter((value) => !Number.isNaN(value));
  return known.length === 0 ? undefined : known.reduce((most, value) => Math.max(most, value), 0);
}
