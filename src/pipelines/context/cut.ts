import { partsOf, type Transcript } from './transcript.ts';
import type { Turns } from './turns.ts';

/** Stands where the middle of a text was left out. */
export const CUT_MARK = '\n[...]\n';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** The last place at or before `at` that is not inside a character as people see it. */
export function boundaryAt(text: string, at: number): number {
  if (at <= 0) return 0;
  if (at >= text.length) return text.length;
  return graphemes.segment(text).containing(at)!.index;
}

/** About `length` UTF-16 units of a text, never more: its beginning and its end, whole characters, and a mark between. */
export function cutText(text: string, length: number): string {
  if (length >= text.length) return text;
  const head = boundaryAt(text, Math.ceil(length / 2));
  const tailFrom = text.length - Math.floor(length / 2);
  let tail = boundaryAt(text, tailFrom);
  if (tail < tailFrom) tail += graphemes.segment(text).containing(tail)!.segment.length;
  return text.slice(0, head) + CUT_MARK + text.slice(tail);
}

/** The longest text that may be cut: of the user's messages in the last turn. */
export function longestText(
  { messages }: Transcript,
  { system, order }: Turns,
): { message: number; part: number; text: string } | undefined {
  const elsewhere = new Set([...system, ...order.flat()]);
  let longest: { message: number; part: number; text: string } | undefined;
  const lastTurn = messages.findLastIndex(
    ({ role }, at) => role === 'user' && messages[at - 1]?.role !== 'user',
  );
  for (const [message, { role, value, pinned }] of messages.entries()) {
    if (message < lastTurn || role !== 'user' || pinned || elsewhere.has(message)) continue;
    for (const [part, { text }] of partsOf(value).entries()) {
      if (typeof text === 'string' && text.length > (longest?.text.length ?? 0))
        longest = { message, part, text };
    }
  }
  return longest;
}
