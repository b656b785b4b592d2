import type { GoldenAnswer } from './answers.ts';
import { type DecisionRule, GoldenFault } from './golden.ts';

/** What an answer decides, and by how much: the margin over the next best decision, where the answer tells it. */
export interface Decision {
  decision: string;
  margin?: number;
}

/** Two answers that cannot be read decide the same: nothing. Throws a GoldenFault where a rule does not fit the answers at all. */
export function decide(rule: DecisionRule, answer: GoldenAnswer): Decision {
  if (answer.refused !== undefined) return { decision: `refused:${answer.refused}` };
  switch (rule.by) {
    case 'text':
      return { decision: (answer.text ?? '').trim() };
    case 'first-word':
      return withMargin((answer.text ?? '').trim().split(/\s+/)[0]!, wordMargin(answer));
    case 'member':
      return { decision: memberOf(answer.text ?? '', rule.path) };
    case 'nearest':
      return nearest(answer.vectors ?? []);
    case 'largest':
      return largest(outputOf(answer, rule));
    case 'threshold': {
      const [value = Number.NaN] = outputOf(answer, rule).data;
      return withMargin(value >= rule.at ? 'yes' : 'no', Math.abs(value - rule.at));
    }
  }
}

function withMargin(decision: string, margin: number | undefined): Decision {
  return margin === undefined || Number.isNaN(margin) ? { decision } : { decision, margin };
}

/** By how much the likeliest token at a place is likelier than the next, in nats. */
export function marginAt(answer: GoldenAnswer, position: number): number | undefined {
  const [first, second] = answer.tokens?.[position]?.top ?? [];
  return first && second ? first.logprob - second.logprob : undefined;
}

/** The least along the tokens of the first word; of the token after it, over the likeliest one that would make the word longer. */
function wordMargin(answer: GoldenAnswer): number | undefined {
  const margins: number[] = [];
  let text = '';
  for (const [i, token] of (answer.tokens ?? []).entries()) {
    if (text.trim() !== '' && ENDS_WORD.test(token.text)) {
      const longer = token.top.find((other) => !ENDS_WORD.test(other.text));
      if (longer) margins.push(token.top[0]!.logprob - longer.logprob);
      break;
    }
    margins.push(marginAt(answer, i) ?? Number.POSITIVE_INFINITY);
    text += token.text;
    if (/\S\s/.test(text)) break;
  }
  const least = margins.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  return Number.isFinite(least) ? least : undefined;
}

/** A token before which a word is over; an empty one ends the text. */
const ENDS_WORD = /^(\s|$)/;

function memberOf(text: string, path: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text.trim().replace(/^```(?:json)?\s*|\s*```$/g, ''));
  } catch {
    return 'unreadable'; // no JSON: a decision like any other, which no reference that is any good shares
  }
  for (const part of path.slice(1).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    value =
      typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  }
  return JSON.stringify(value) ?? 'absent';
}

/** The output that a rule decides by. Throws a GoldenFault where there is none. */
export function outputOf({ outputs = [] }: GoldenAnswer, rule: DecisionRule) {
  const name = 'output' in rule ? rule.output : undefined;
  const found = name === undefined ? outputs[0] : outputs.find((output) => output.name === name);
  if (found) return found;
  const all = outputs.map((output) => output.name).join(', ');
  throw new GoldenFault(`there is no output '${name ?? ''}' in an answer: it has ${all || 'none'}`);
}

/** Along the last axis, row by row. NaN is never the greatest. */
function largest({ shape, data }: { shape: number[]; data: number[] }): Decision {
  const width = Math.max(1, shape.at(-1) ?? data.length);
  const places: number[] = [];
  let margin = Number.POSITIVE_INFINITY;
  for (let from = 0; from < data.length; from += width) {
    const row = data.slice(from, from + width);
    const order = row.map((_, i) => i).sort((i, j) => rank(row[j]!) - rank(row[i]!) || i - j);
    places.push(order[0]!);
    if (order.length > 1) margin = Math.min(margin, row[order[0]!]! - row[order[1]!]!);
  }
  return withMargin(places.join(','), Number.isFinite(margin) ? margin : undefined);
}

const rank = (value: number) => (Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value);

function nearest([first = [], ...others]: number[][]): Decision {
  return largest({ shape: [others.length], data: others.map((other) => cosine(first, other)) });
}

export function cosine(a: readonly number[], b: readonly number[]): number {
  let [product, lengthA, lengthB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    product += a[i]! * (b[i] ?? Number.NaN);
    lengthA += a[i]! ** 2;
    lengthB += (b[i] ?? Number.NaN) ** 2;
  }
  return product / Math.sqrt(lengthA * lengthB);
}
