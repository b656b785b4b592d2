/** What a simulated model reads and says: only lengths mean anything, but the same request gets the same words. */

const BYTES_PER_TOKEN = 4;
/** Of a message's part that is no text, such as an image. */
const OTHER_PART_TOKENS = 256;
/** Role and separators of a message. */
const FRAME_TOKENS = 3;

const WORDS = (
  'the quick brown fox jumps over a lazy dog and runs on past old stone walls where grey birds sing in the cold ' +
  'light of early day while small boats drift down the wide slow river to the sea under a pale and quiet sky'
).split(' ');

/** Tokens of a text: one for every four bytes of UTF-8, begun ones included. */
export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Tokens of a chat's messages, each with its role. Unknown shapes count by their JSON. */
export function tokensOfMessages(messages: readonly unknown[]): number {
  let tokens = 0;
  for (const message of messages) {
    const content = (message as { content?: unknown } | null)?.content;
    tokens += FRAME_TOKENS;
    if (typeof content === 'string') tokens += tokensOfText(content);
    else if (Array.isArray(content)) tokens += content.reduce((sum, part) => sum + tokensOfPart(part), 0);
    else if (message) tokens += tokensOfText(JSON.stringify(message));
  }
  return tokens;
}

function tokensOfPart(part: unknown): number {
  const text = (part as { text?: unknown } | null)?.text;
  return typeof text === 'string' ? tokensOfText(text) : OTHER_PART_TOKENS;
}

/** The text of the token at `index` of the answer to `subject`; all together are words with single spaces between. */
export function wordAt(subject: number, index: number): string {
  const word = WORDS[(subject + index) % WORDS.length]!;
  return index === 0 ? word : ` ${word}`;
}

/** A number that stands for a text. Formula: FNV-1a over UTF-16 units, 32 bits. */
export function digest(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
