import { type Member, scanElements, scanMembers } from '../../protocols/json-members.ts';
import { isObject } from '../../protocols/json-object.ts';
import { isTangled } from './nesting.ts';

/**
 * A conversation as the one form that all backends' prompts are made of: messages of text and parts, never tokens. It is
 * the body of a chat, read; each message knows its bytes, so that what is kept goes on as it was written.
 */
export interface Transcript {
  readonly body: Buffer;
  readonly messages: readonly Message[];
  /** Where the list of messages lies in the body, brackets included. */
  readonly list: { start: number; end: number };
  /** Everything else that the body says. */
  readonly rest: Readonly<Record<string, unknown>>;
}

export interface Message {
  readonly role: string;
  /** The message as it was sent, without what is said to Armature. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly start: number;
  readonly end: number;
  /** The caller wants it kept. */
  readonly pinned: boolean;
}

/** What a member of a message says to Armature alone: it never goes upstream. */
const OWN_MEMBER = 'armature';

/** Reads a transcript; undefined where the body has none that can be read: the engine will say what is wrong with it. */
export function readTranscript(body: Buffer): Transcript | undefined {
  const scanned = scanMembers(body, 0, body.length, ['messages']);
  if (typeof scanned === 'string') return undefined;
  const list = scanned.members.at(-1);
  const places = list && scanElements(body, list.start, list.end);
  if (!places || places.length === 0) return undefined;
  let rest: Record<string, unknown>;
  const messages: Message[] = [];
  try {
    rest = JSON.parse(body.toString('utf8')) as Record<string, unknown>;
    const values = rest.messages as unknown[];
    if (values.length !== places.length) return undefined;
    for (const [at, { start, end }] of places.entries()) {
      const message = readMessage(values[at], start, end);
      if (!message) return undefined;
      messages.push(message);
    }
  } catch {
    return undefined; // not JSON
  }
  delete rest.messages;
  return { body, messages, list: { start: list.start, end: list.end }, rest };
}

function readMessage(sent: unknown, start: number, end: number): Message | undefined {
  if (!isObject(sent)) return undefined;
  let value = sent;
  const { role, [OWN_MEMBER]: own } = value;
  if (typeof role !== 'string') return undefined;
  const pinned = typeof own === 'object' && own !== null && (own as { pinned?: unknown }).pinned === true;
  if (Object.hasOwn(value, OWN_MEMBER)) {
    value = { ...value };
    delete value[OWN_MEMBER];
  }
  return { role, value, start, end, pinned };
}

/** What a message counts for before it is counted, in characters: its texts, calls of tools, and what is put around it. */
export function weightOf({ value, start, end }: Message): number {
  const { content, tool_calls: calls } = value;
  if (typeof content === 'string' && calls == null) return AROUND_CHARACTERS + content.length;
  if (!Array.isArray(content)) return AROUND_CHARACTERS + end - start;
  return AROUND_CHARACTERS + textsOf(value).reduce((sum, text) => sum + text.length, 0);
}

const AROUND_CHARACTERS = 20;

/** The member of the body that is nested beyond what can be made a prompt of; undefined where none is. */
export function tangledIn({ messages, rest }: Transcript): string | undefined {
  const parted = messages.filter(
    ({ value }) => typeof value.content !== 'string' || value.tool_calls != null,
  );
  if (isTangled(parted.map(({ value }) => value))) return 'messages';
  return ['tools', 'documents', 'chat_template_kwargs'].find((member) => isTangled(rest[member]));
}

/** One part of a message, as OpenAI has them. */
export interface Part {
  type?: unknown;
  text?: unknown;
}

/** The parts of a message; a text is one part. */
export function partsOf({ content }: Message['value']): readonly Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content)) return [];
  return content.map((part: unknown) => (typeof part === 'object' && part !== null ? (part as Part) : {}));
}

/** The texts of a message, in order. */
export function textsOf(value: Message['value']): string[] {
  return partsOf(value).flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
}

export function imagesIn(value: Message['value']): number {
  return partsOf(value).filter(({ type }) => type === 'image_url' || type === 'input_image').length;
}

/** What changes in a message that is kept. */
export interface Change {
  /** Put before its first text. */
  before?: string;
  /** Stands for the text of this part (0 where the content is a text). */
  text?: { part: number; text: string };
}

/** A message with its change made, as templates see it. */
export function changed(value: Message['value'], change: Change | undefined): Message['value'] {
  if (!change) return value;
  const { before, text } = change;
  let { content } = value;
  if (typeof content === 'string' || content === null || content === undefined) {
    content = (before ?? '') + (text?.text ?? content ?? '');
  } else if (Array.isArray(content)) {
    const parts = content.map((part: unknown, at) =>
      at === text?.part ? { ...(part as Part), text: text.text } : part,
    );
    content = before === undefined ? parts : [{ type: 'text', text: before }, ...parts];
  }
  return { ...value, content };
}

/**
 * The body with the messages of `kept` alone, in their order, each by its own bytes save for its change and without what is
 * said to Armature. Gives the caller's own bytes where nothing changes.
 */
export function bodyOf(
  transcript: Transcript,
  kept: readonly number[],
  changes: ReadonlyMap<number, Change>,
): Buffer {
  const { body, messages, list } = transcript;
  const whole = kept.length === messages.length && changes.size === 0;
  if (whole && !body.includes(`"${OWN_MEMBER}"`)) return body;
  const pieces: Buffer[] = [body.subarray(0, list.start), Buffer.from('[')];
  for (const [at, index] of kept.entries()) {
    const message = messages[index]!;
    const change = changes.get(index);
    if (at > 0) pieces.push(Buffer.from(','));
    pieces.push(change ? rewritten(body, message, change) : withoutOwn(body, message));
  }
  pieces.push(Buffer.from(']'), body.subarray(list.end));
  return Buffer.concat(pieces);
}

/** The bytes of a message with new content; its other members as they were written. */
function rewritten(body: Buffer, message: Message, change: Change): Buffer {
  const scanned = scanMembers(body, message.start, message.end);
  if (typeof scanned === 'string') throw new Error(scanned); // it was read before
  const content = `"content":${JSON.stringify(changed(message.value, change).content)}`;
  const others = scanned.members
    .filter(({ key }) => key !== 'content' && key !== OWN_MEMBER)
    .map((member) => memberText(body, member));
  return Buffer.from(`{${[...others, content].join(',')}}`);
}

function withoutOwn(body: Buffer, { start, end }: Message): Buffer {
  const bytes = body.subarray(start, end);
  if (!bytes.includes(`"${OWN_MEMBER}"`)) return bytes;
  const scanned = scanMembers(body, start, end);
  if (typeof scanned === 'string' || !scanned.members.some(({ key }) => key === OWN_MEMBER)) return bytes;
  const others = scanned.members.filter(({ key }) => key !== OWN_MEMBER);
  return Buffer.from(`{${others.map((member) => memberText(body, member)).join(',')}}`);
}

function memberText(body: Buffer, { key, start, end }: Member): string {
  return `${JSON.stringify(key)}:${body.toString('utf8', start, end)}`;
}
