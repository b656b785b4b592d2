import type { Candidate } from './candidate.ts';
import { cutText, longestText } from './cut.ts';
import { type Transcript, weightOf } from './transcript.ts';
import type { Turns } from './turns.ts';

/** How many tokens a candidate's prompt has; at most, where it is not exact. */
export interface Count {
  tokens: number;
  exact: boolean;
}

/** Where it came from: all was kept, some was left out, the last turn was cut; or nothing fits. */
export interface Fit {
  how: 'whole' | 'shortened' | 'cut' | 'unfit';
  candidate: Candidate;
  /** Of the candidate's prompt; of `unfit`, of the smallest there is. */
  count: Count;
  /** Of the whole transcript; its bytes, where it is so long that nobody has to count. */
  whole: Count;
}

export interface FitRule {
  /** Tokens that the prompt may have. */
  budget: number;
  /** Whether a text of the last turn may be cut where nothing else helps. */
  cut: boolean;
  /** Tokens kept free for a summary of what is left out; 0 for none. */
  summary: number;
}

/** Characters of a token, as a first guess; and more than those of any text that is no mere repetition. */
const CHARACTERS_USUAL = 4;
const CHARACTERS_MAX = 16;

/**
 * Finds what of a transcript fits: all of it, or all but the fewest units of the order. It yields candidates, and is given their
 * counts in the same order; who drives it may render and count them wherever that is done best. What it comes to has been
 * counted. What is too long beyond doubt is not: nobody makes tokens of megabytes for a window of a few thousand.
 */
export function* fitTranscript(
  transcript: Transcript,
  turns: Turns,
  rule: FitRule,
): Generator<Candidate[], Fit, Count[]> {
  const { budget } = rule;
  const all: Candidate = { out: 0 };
  const weight = transcript.messages.reduce((sum, message) => sum + weightOf(message), 0);
  let whole: Count = { tokens: transcript.list.end - transcript.list.start, exact: false };
  let reckoned = Math.ceil(weight / CHARACTERS_USUAL);
  if (weight <= budget * CHARACTERS_MAX) {
    const [count] = yield [all];
    whole = count!;
    reckoned = whole.tokens;
    if (whole.tokens <= budget) return { how: 'whole', candidate: all, count: whole, whole };
  }
  const room = Math.max(1, budget - rule.summary);
  const found = yield* fewestOut(transcript, turns, { whole, reckoned, weight }, room);
  if (found.count.tokens <= budget) return { how: 'shortened', ...found, whole };
  const cut = rule.cut ? yield* cutToFit(transcript, turns, found, budget) : undefined;
  return cut ? { how: 'cut', ...cut, whole } : { how: 'unfit', ...found, whole };
}

interface Found {
  candidate: Candidate;
  count: Count;
}

/**
 * The fewest units to leave out so that the rest fits; all of them where nothing does. As if tokens were spread over what is
 * known to fit and what is known not to as its weight is: each count makes the next guess better.
 */
function* fewestOut(
  transcript: Transcript,
  { order }: Turns,
  { whole, reckoned, weight }: { whole: Count; reckoned: number; weight: number },
  budget: number,
): Generator<Candidate[], Found, Count[]> {
  const weights = order.map((unit) => unit.reduce((sum, at) => sum + weightOf(transcript.messages[at]!), 0));
  let low = { out: 0, tokens: reckoned }; // too much with so few left out
  let high = { out: order.length + 1, tokens: 0 }; // and with so many nobody knows better
  let found: Found = { candidate: { out: 0 }, count: whole };
  let perWeight = reckoned / weight;
  for (let rounds = 0; high.out - low.out > 1; rounds++) {
    const guess =
      rounds < ROUNDS_GUESSED ? guessOut(weights, low, perWeight, budget) : (low.out + high.out) >> 1;
    const probes = probesIn(low.out, high.out, guess);
    const counts: Count[] = yield probes.map((out) => ({ out }));
    for (const [at, out] of probes.entries()) {
      const { tokens } = counts[at]!;
      if (out >= high.out) break;
      if (tokens <= budget) high = { out, tokens };
      else if (out > low.out) low = { out, tokens };
      if (tokens <= budget || out === order.length) found = { candidate: { out }, count: counts[at]! };
    }
    const between = weights.slice(low.out, high.out).reduce((sum, weight) => sum + weight, 0);
    if (high.out <= order.length && between > 0) perWeight = (low.tokens - high.tokens) / between;
  }
  return found;
}

/** After so many guesses the middle of what is left is taken: no spread of tokens makes it look for long. */
const ROUNDS_GUESSED = 6;

/** Up to three places strictly between, around the guess. */
function probesIn(low: number, high: number, guess: number): number[] {
  const middle = Math.min(high - 1, Math.max(low + 1, guess));
  return [middle - 1, middle, middle + 1].filter((out) => out > low && out < high);
}

function guessOut(
  weights: readonly number[],
  low: { out: number; tokens: number },
  perWeight: number,
  budget: number,
): number {
  let over = low.tokens - budget;
  let { out } = low;
  while (over > 0 && out < weights.length) over -= weights[out++]! * perWeight;
  return out;
}

/**
 * The longest text of what is left, with little of its middle left out: no more than an eighth of it could have stayed.
 * Undefined where even without it the rest is too much.
 */
function* cutToFit(
  transcript: Transcript,
  turns: Turns,
  { candidate }: Found,
  budget: number,
): Generator<Candidate[], Found | undefined, Count[]> {
  const place = longestText(transcript, turns);
  if (!place) return undefined;
  const { message, part, text } = place;
  const at = (length: number): Candidate => ({
    ...candidate,
    cut: { message, part, text: cutText(text, length) },
  });
  let best: Found | undefined;
  let low = -1;
  let high = Math.min(text.length, budget * CHARACTERS_MAX);
  let lengths = [0, budget, budget * 2, budget * CHARACTERS_USUAL].filter((length) => length < high);
  while (lengths.length > 0) {
    const probes = lengths.map(at);
    const counts: Count[] = yield probes;
    for (const [probe, length] of lengths.entries()) {
      const count = counts[probe]!;
      if (count.tokens > budget) {
        high = Math.min(high, length);
        break;
      }
      low = length;
      best = { candidate: probes[probe]!, count };
    }
    const size = high - low;
    const enough = size <= 1 || (low >= 0 && size * 8 <= low);
    lengths = enough ? [] : [size >> 2, size >> 1, (3 * size) >> 2].map((step) => low + Math.max(1, step));
    lengths = [...new Set(lengths)].filter((length) => length > low && length < high);
  }
  return best;
}
