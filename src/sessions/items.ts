import { isObject, type Json } from '../protocols/json-object.ts';
import type { NewItem } from '../store/sessions.ts';
import { type IdPrefix, newId } from './ids.ts';
import { given, optionalFlag, optionalObject, optionalText, Refused, text } from './refused.ts';

/** What a conversation consists of, in the form in which it is kept and shown: OpenAI's items. */
export type Item = Message | FunctionCall | FunctionCallOutput | Reasoning;

export type Role = 'user' | 'assistant' | 'system' | 'developer';

export interface Message {
  type: 'message';
  role: Role;
  status: string;
  content: Part[];
  /** The turn is never left out to make a conversation fit; kept beside the item, for the context's fitting. */
  armature?: Json;
}

export type Part = Json & { type: string };

export interface FunctionCall {
  type: 'function_call';
  call_id: string;
  name: string;
  arguments: string;
  status: string;
}

export interface FunctionCallOutput {
  type: 'function_call_output';
  call_id: string;
  output: string | Part[];
  status: string;
}

/** Kept and shown, and not sent to a model: what one has thought is not for the next to read. */
export interface Reasoning {
  type: 'reasoning';
  summary: unknown[];
  content?: unknown[];
}

/** An item that was kept before, named by its id. */
export interface Reference {
  type: 'item_reference';
  id: string;
}

const PREFIXES: Record<Item['type'], IdPrefix> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  reasoning: 'rs',
};

const ROLES = ['user', 'assistant', 'system', 'developer'];
const ITEMS_MAX = 10_000;

/** Gives an item an id of its own. */
export function toKeep(item: Item, id = newId(PREFIXES[item.type])): NewItem {
  return { id, body: JSON.stringify({ id, ...item }) };
}

/** An item out of the store; its id goes its own way. */
export function readKept(body: string): Item {
  const { id: _, ...item } = JSON.parse(body) as { id: string } & Item;
  return item as Item;
}

/** Reads `input`, or the items of a conversation. Throws Refused. */
export function readItems(value: unknown, at: string): (Item | Reference)[] {
  if (!Array.isArray(value)) throw new Refused(`Expected '${at}' to be a list of items.`, at);
  if (value.length > ITEMS_MAX) throw new Refused(`'${at}' may have ${ITEMS_MAX} items at most.`, at);
  return value.map((item, index) => readItem(item, `${at}[${index}]`));
}

export function userMessage(words: string): Message {
  return {
    type: 'message',
    role: 'user',
    status: 'completed',
    content: [{ type: 'input_text', text: words }],
  };
}

function readItem(item: unknown, at: string): Item | Reference {
  if (!isObject(item)) throw new Refused(`Expected '${at}' to be an object.`, at);
  const named = given(item, 'type');
  // The short forms of a message and of a reference have no type.
  const type =
    named ??
    (given(item, 'role') !== undefined ? 'message' : isReference(item) ? 'item_reference' : undefined);
  switch (type) {
    case 'message':
      return readMessage(item, at);
    case 'function_call':
      return {
        type: 'function_call',
        call_id: name(item, 'call_id', at),
        name: name(item, 'name', at),
        arguments: text(item, 'arguments', `${at}.arguments`),
        status: 'completed',
      };
    case 'function_call_output':
      return {
        type: 'function_call_output',
        call_id: name(item, 'call_id', at),
        output: readOutput(given(item, 'output'), `${at}.output`),
        status: 'completed',
      };
    case 'reasoning': {
      const content = list(item, 'content', at);
      return { type: 'reasoning', summary: list(item, 'summary', at) ?? [], ...(content ? { content } : {}) };
    }
    case 'item_reference':
      return { type: 'item_reference', id: name(item, 'id', at) };
    case undefined:
      throw new Refused(`'${at}' has neither a type nor a role.`, `${at}.type`);
    default:
      throw new Refused(
        `Items of type '${String(type).slice(0, 100)}' cannot be carried by this gateway: its models take messages, function calls and their outputs.`,
        `${at}.type`,
      );
  }
}

const isReference = (item: Json): boolean => Object.keys(item).join() === 'id';

function readMessage(item: Json, at: string): Message {
  const role = text(item, 'role', `${at}.role`);
  if (!ROLES.includes(role))
    throw new Refused(`Expected '${at}.role' to be one of ${ROLES.join(', ')}.`, `${at}.role`);
  const content = given(item, 'content');
  const where = `${at}.content`;
  const isPinned = optionalFlag(
    optionalObject(item, 'armature', `${at}.armature`) ?? {},
    'pinned',
    `${at}.armature.pinned`,
  );
  return {
    type: 'message',
    role: role as Role,
    status: 'completed',
    content: role === 'assistant' ? readAnswered(content, where) : readAsked(content, where, role as Role),
    ...(isPinned ? { armature: { pinned: true } } : {}),
  };
}

function readAsked(content: unknown, at: string, role: Role): Part[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }];
  return parts(content, at, (part, where) => readAskedPart(part, where, role));
}

function readAskedPart(part: Json, at: string, role: Role | 'output'): Part {
  const { type } = part;
  if (type === 'input_text') return { type, text: text(part, 'text', `${at}.text`) };
  if (type === 'input_image' && role !== 'system' && role !== 'developer') {
    if (given(part, 'file_id') !== undefined)
      throw new Refused(
        'An image is taken by its address or as data, and not by the id of a file.',
        `${at}.file_id`,
      );
    const detail = optionalText(part, 'detail', `${at}.detail`);
    return { type, image_url: text(part, 'image_url', `${at}.image_url`), detail: detail ?? 'auto' };
  }
  if (type === 'input_audio' && role === 'user') {
    const audio = optionalObject(part, 'input_audio', `${at}.input_audio`) ?? {};
    const where = `${at}.input_audio`;
    return {
      type,
      input_audio: {
        data: text(audio, 'data', `${where}.data`),
        format: text(audio, 'format', `${where}.format`),
      },
    };
  }
  throw cannotCarry(type, at);
}

function readAnswered(content: unknown, at: string): Part[] {
  if (typeof content === 'string') return [outputText(content)];
  return parts(content, at, (part, where) => {
    const { type } = part;
    if (type === 'output_text') return outputText(text(part, 'text', `${where}.text`));
    if (type === 'refusal') return { type, refusal: text(part, 'refusal', `${where}.refusal`) };
    throw cannotCarry(type, where);
  });
}

export const outputText = (words: string): Part => ({
  type: 'output_text',
  text: words,
  annotations: [],
  logprobs: [],
});

function readOutput(output: unknown, at: string): string | Part[] {
  if (typeof output === 'string') return output;
  return parts(output, at, (part, where) => readAskedPart(part, where, 'output'));
}

function parts(content: unknown, at: string, read: (part: Json, at: string) => Part): Part[] {
  if (!Array.isArray(content)) throw new Refused(`Expected '${at}' to be a string or a list of parts.`, at);
  if (content.length === 0) throw new Refused(`'${at}' has no parts.`, at);
  return content.map((part: unknown, index) => {
    const where = `${at}[${index}]`;
    if (!isObject(part)) throw new Refused(`Expected '${where}' to be an object.`, where);
    return read(part, where);
  });
}

function cannotCarry(type: unknown, at: string): Refused {
  return new Refused(
    `Parts of type '${String(type).slice(0, 100)}' cannot be carried here: expected input_text or input_image of whoever asks, output_text or refusal of an assistant.`,
    `${at}.type`,
  );
}

function name(item: Json, key: string, at: string): string {
  const value = text(item, key, `${at}.${key}`);
  if (value === '') throw new Refused(`'${at}.${key}' is empty.`, `${at}.${key}`);
  return value;
}

function list(item: Json, key: string, at: string): unknown[] | undefined {
  const value = given(item, key);
  if (value !== undefined && !Array.isArray(value))
    throw new Refused(`Expected '${at}.${key}' to be a list.`, `${at}.${key}`);
  return value;
}
