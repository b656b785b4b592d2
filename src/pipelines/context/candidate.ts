import type { Change, Message, Transcript } from './transcript.ts';
import { changed } from './transcript.ts';
import type { Turns } from './turns.ts';

/** What of a transcript may be sent: all of it but some units, a summary in their place, a text made shorter. */
export interface Candidate {
  /** So many units of the order are left out. */
  out: number;
  /** Stands for what is left out. */
  summary?: string | undefined;
  /** A text of the last turn, cut. */
  cut?: { message: number; part: number; text: string } | undefined;
}

/** The places of the messages that a candidate keeps, in order. */
export function keptOf({ messages }: Transcript, { placeOf }: Turns, { out }: Candidate): number[] {
  const kept: number[] = [];
  for (let at = 0; at < messages.length; at++) {
    const place = placeOf[at];
    if (place === undefined || place >= out) kept.push(at);
  }
  return kept;
}

/** What is put before a summary, so that a model knows what it reads. */
const SUMMARY_HEAD = '[What was said before, in short:]\n';
const SUMMARY_TAIL = '\n[End of what was said before.]\n\n';

/**
 * What changes in the messages of a candidate. A summary goes before the text of the first message of the user behind what was
 * left out: it is made of what callers wrote, and must not get the standing of instructions.
 */
export function changesOf(
  transcript: Transcript,
  turns: Turns,
  kept: readonly number[],
  { out, summary, cut }: Candidate,
): Map<number, Change> {
  const changes = new Map<number, Change>();
  if (cut) changes.set(cut.message, { text: { part: cut.part, text: cut.text } });
  if (summary === undefined) return changes;
  const lastOut = turns.order.slice(0, out).reduce<number>((last, unit) => Math.max(last, unit.at(-1)!), -1);
  const isUser = (index: number) => transcript.messages[index]!.role === 'user';
  const at = kept.find((index) => index > lastOut && isUser(index)) ?? kept.findLast(isUser);
  if (at === undefined) return changes;
  changes.set(at, { ...changes.get(at), before: SUMMARY_HEAD + summary + SUMMARY_TAIL });
  return changes;
}

/** The messages of a candidate, as templates see them. */
export function messagesOf(transcript: Transcript, turns: Turns, candidate: Candidate): Message['value'][] {
  const kept = keptOf(transcript, turns, candidate);
  const changes = changesOf(transcript, turns, kept, candidate);
  return kept.map((index) => changed(transcript.messages[index]!.value, changes.get(index)));
}
