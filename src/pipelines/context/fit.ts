import { bytesOf, type Candidate } from './candidate.ts';
import { cutText, longestText } from './cut.ts';
import type { Transcript } from './transcript.ts';
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
  /** Of the whole transcript. */
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

/**
 * Finds what of a transcript fits: all of it, or all but the fewest units of the order. It yields candidates, and is given their
 * counts in the same order; who drives it may render and count them wherever that is done best. What it comes to has been counted.
 */
export function* fitTranscript(
  transcript: Transcript,
  turns: Turns,
  rule: FitRule,
): Generator<Candidate[], Fit, Count[]> {
  const { budget } = rule;
  const all: Candidate = { out: 0 };
  const [whole] = yield [all];
  if (whole!.tokens <= budget) return { how: 'whole', candidate: all, count: whole!, whole: whole! };
  const found = yield* fewestOut(transcript, turns, whole!, Math.max(1, budget - rule.summary));
  if (found.count.tokens <= budget) return { how: 'shortened', ...found, whole: whole! };
  const cut = rule.cut ? yield* cutToFit(transcript, turns, found, budget) : undefined;
  return cut ? { how: 'cut', ...cut, whole: whole! } : { how: 'unfit', ...found, whole: whole! };
}

interface Found {
  candidate: Candidate;
  count: Count;
}

/** The fewest units to leave out so that the rest fits; all of them where nothing does. Around a guess by bytes at first. */
function* fewestOut(
  transcript: Transcript,
  { order }: Turns,
  whole: Count,
  budget: number,
): Generator<Candidate[], Found, Count[]> {
  let low = 0; // too much with so few left out
  let high = order.length + 1; // and with so many nobody knows better
  let found: Found = { candidate: { out: 0 }, count: whole };
  let guess = guessOut(transcript, order, whole, budget);
  while (high - low > 1) {
    const probes = probesIn(low, Math.min(high, order.length + 1), guess);
    const counts = yield probes.map((out) => ({ out }));
    for (const [at, out] of probes.entries()) {
      const count = counts[at]!;
      if (count.tokens <= budget) {
        if (out < high) {
          high = out;
          found = { candidate: { out }, count };
        }
      } else if (out < high) {
        low = Math.max(low, out);
        if (high > order.length && out === order.length) found = { candidate: { out }, count };
      }
    }
    guess = (low + high) >> 1;
  }
  return found;
}

/** Up to three places strictly between, around the guess. */
function probesIn(low: number, high: number, guess: number): number[] {
  const middle = Math.min(high - 1, Math.max(low + 1, guess));
  return [middle - 1, middle, middle + 1].filter((out) => out > low && out < high);
}

/** As if tokens were spread over the body as its bytes are. */
function guessOut(transcript: Transcript, order: Turns['order'], whole: Count, budget: number): number {
  const perByte = whole.tokens / Math.max(1, transcript.body.length);
  let over = whole.tokens - budget;
  let out = 0;
  while (over > 0 && out < order.length) over -= bytesOf(transcript, order[out++]!) * perByte;
  return out;
}

/** The longest text of what is left, with as little of its middle left out as fits; undefined where even that is too much. */
function* cutToFit(
  transcript: Transcript,
  turns: Turns,
  { candidate }: Found,
  budget: number,
): Generator<Candidate[], Found | undefined, Count[]> {
  const place = longestText(transcript, turns);
  if (!place) return undefined;
  const { message, part, text } = place;
  let best: Found | undefined;
  let low = -1;
  let high = text.length;
  while (high - low > 1) {
    const size = high - low;
    const lengths =
      size > 8
        ? [low + (size >> 2), low + (size >> 1), low + ((3 * size) >> 2)]
        : Array.from({ length: size - 1 }, (_, at) => low + 1 + at);
    const probes = lengths.map((length) => ({
      ...candidate,
      cut: { message, part, text: cutText(text, length) },
    }));
    const counts = yield probes;
    for (const [at, length] of lengths.entries()) {
      const count = counts[at]!;
      if (count.tokens > budget) {
        high = Math.min(high, length);
        break;
      }
      low = length;
      best = { candidate: probes[at]!, count };
    }
  }
  return best;
}
