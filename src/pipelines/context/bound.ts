import { imagesIn, type Message, textsOf } from './transcript.ts';

/**
 * How many tokens a text has at most, where its tokenizer is not known: its UTF-8 bytes. No token of a vocabulary of bytes
 * stands for less than one byte, nor one of another vocabulary for less than one character. Tokenizers that bring a text into
 * Unicode's composed form first may lengthen a few characters by it; the longer form counts.
 */
export function boundOfText(text: string): number {
  const bytes = Buffer.byteLength(text);
  // Plain ASCII has one form only.
  return bytes === text.length ? bytes : Math.max(bytes, Buffer.byteLength(text.normalize('NFKC')));
}

/** What a template that is not known is reckoned to write around each message, in tokens. */
export const AROUND_MESSAGE = 24;
/** And once in a prompt: the beginning of the answer, and instructions of its own where there are none. */
const AROUND_PROMPT = 128;

/** How many tokens the prompt of a chat has at most, where its template is not known either. */
export function boundOfChat(
  messages: readonly Message['value'][],
  rest: Readonly<Record<string, unknown>>,
): number {
  let tokens = AROUND_PROMPT;
  for (const message of messages) {
    tokens += AROUND_MESSAGE;
    for (const text of textsOf(message)) tokens += boundOfText(text);
    for (const [key, value] of Object.entries(message)) {
      if (key !== 'content' && value != null) tokens += boundOfText(asText(value));
    }
  }
  if (Array.isArray(rest.tools) && rest.tools.length > 0) tokens += boundOfText(asText(rest.tools));
  return tokens;
}

/** What images are reckoned at: no tokenizer of text counts them. */
export function imageTokens(messages: readonly Message['value'][], each: number): number {
  return messages.reduce((sum, message) => sum + imagesIn(message) * each, 0);
}

/** Twice over: some templates write a member to a line, and runs of spaces are few tokens. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value).repeat(2);
}
