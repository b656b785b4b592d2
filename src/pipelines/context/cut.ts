import { partsOf, type Transcript } from './transcript.ts';
import type { Turns } from './turns.ts';

/** Stands where the middle of a text was left out. */
export const CUT_MARK = '\n[...]\n';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** How far around a place its character is looked for; a longer one is looked for in the whole text. */
const NEAR = 4096;

/** The character, as people see it, that the UTF-16 unit at `at` belongs to: where it begins and ends. */
function characterAt(text: string, at: number): { start: number; end: number } {
  // Whatever is before a letter of ASCII cannot change what comes after it.
  let from = Math.max(0, at - 1);
  while (from > 0 && at - from < NEAR && !isPlain(text.charCodeAt(from))) from--;
  if (from > 0 && !isPlain(text.charCodeAt(from))) return find(text, 0, at);
  const to = Math.min(text.length, at + NEAR);
  const found = find(text.slice(from, to), from, at);
  const isWhole = (found.start > from || from === 0) && (found.end < to || to === text.length);
  return isWhole ? found : find(text, 0, at);
}

function isPlain(unit: number): boolean {
  return (unit >= 0x30 && unit <= 0x39) || (unit >= 0x41 && unit <= 0x5a) || (unit >= 0x61 && unit <= 0x7a);
}

function find(part: string, from: number, at: number): { start: number; end: number } {
  const { index, segment } = graphemes.segment(part).containing(at - from)!;
  return { start: from + index, end: from + index + segment.length };
}

/** The last place at or before `at` that is not inside a character. */
export function boundaryAt(text: string, at: number): number {
  if (at <= 0) return 0;
  return at >= text.length ? text.length : characterAt(text, at).start;
}

/** About `length` UTF-16 units of a text, never more: its beginning and its end, whole characters, and a mark between. */
export function cutText(text: string, length: number): string {
  if (length >= text.length) return text;
  const head = boundaryAt(text, Math.ceil(length / 2));
  const tailFrom = text.length - Math.floor(length / 2);
  const begins = boundaryAt(text, tailFrom);
  const tail = begins < tailFrom ? characterAt(text, tailFrom).end : begins;
  return text.slice(0, head) + CUT_MARK + text.slice(tail);
}

/** The longest text that may be cut: of the user's messages in the last turn. */
export function longestText(
  { messages }: Transcript,
  { placeOf }: Turns,
): { message: number; part: number; text: string } | undefined {
  let longest: { message: number; part: number; text: string } | undefined;
  const lastTurn = messages.findLastIndex(
    ({ role }, at) => role === 'user' && messages[at - 1]?.role !== 'user',
  );
  for (const [message, { role, value, pinned }] of messages.entries()) {
    if (message < lastTurn || role !== 'user' || pinned || placeOf[message] !== undefined) continue;
    for (const [part, { text }] of partsOf(value).entries()) {
      if (typeof text === 'string' && text.length > (longest?.text.length ?? 0))
        longest = { message, part, text };
    }
  }
  return longest;
}
