import { isObject, type Json, parsedObject } from '../../protocols/json-object.ts';
import { namedClass } from './classes.ts';
import type { Filling, StageAsk, StageKind, StageSettings, StageValue } from './contracts.ts';

type Extras = Readonly<Record<string, unknown>>;

/** Two names of one thing: what the stage says by either goes before what the caller says by the other. */
const OUTPUT_CAPS = ['max_tokens', 'max_completion_tokens'];

/** Text generators: a chat, or the continuation of a prompt. */

export const chat: StageKind = {
  name: 'chat',
  streams: true,
  ask(stage, route, filling, stream, extras) {
    const messages = stage.messages
      ? stage.messages.map((message) => filled(message, filling))
      : [{ role: 'user', content: filling.text(inputOf(stage)) }];
    return asked('/v1/chat/completions', route, { messages }, stage, stream, extras);
  },
  read(stage, body) {
    const message = firstChoice(body)?.['message'];
    if (!isObject(message)) return undefined;
    const text = textOf(message['content']);
    const calls = message['tool_calls'];
    const called = Array.isArray(calls) && calls.length > 0;
    if (text === undefined && !called) return undefined;
    const value = classified(stage, text ?? '');
    return value && called ? { ...value, json: calls } : value;
  },
};

export const completions: StageKind = {
  name: 'completions',
  streams: true,
  ask(stage, route, filling, stream, extras) {
    const prompt = filling.text(inputOf(stage));
    return asked('/v1/completions', route, { prompt }, stage, stream, extras);
  },
  read(stage, body): StageValue | undefined {
    const text = firstChoice(body)?.['text'];
    return typeof text === 'string' ? classified(stage, text) : undefined;
  },
};

/** The one input of a stage; there is no other where this is called, as the configuration is checked. */
export function inputOf({ input }: StageSettings): string {
  return typeof input === 'string' ? input : '';
}

function asked(
  target: string,
  model: string,
  what: Json,
  { parameters }: StageSettings,
  stream: boolean,
  extras: Extras,
): StageAsk {
  const body: Json = { ...extras };
  if (OUTPUT_CAPS.some((cap) => Object.hasOwn(parameters, cap))) {
    for (const cap of OUTPUT_CAPS) delete body[cap];
  }
  // What is said comes last: whoever only wants to know how it is asked need not read all of it.
  Object.assign(body, parameters, { model, stream, ...what });
  return { target, body: Buffer.from(JSON.stringify(body)) };
}

/** The answer as it is, or the class that it names; undefined where it names none. */
function classified({ classes }: StageSettings, text: string): StageValue | undefined {
  if (!Array.isArray(classes)) return { text };
  const name = namedClass(text, classes);
  return name === undefined ? undefined : { text: name, class: name };
}

/** A message whose texts are templates; whatever else it has goes as it is. */
function filled(message: Json, filling: Filling): Json {
  const { content } = message;
  if (typeof content === 'string') return { ...message, content: filling.text(content) };
  if (!Array.isArray(content)) return message;
  const parts = content.map((part: unknown) =>
    isObject(part) && typeof part['text'] === 'string' ? { ...part, text: filling.text(part['text']) } : part,
  );
  return { ...message, content: parts };
}

function firstChoice(body: Buffer): Json | undefined {
  const choices = parsedObject(body)?.['choices'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(first) ? first : undefined;
}

/** A text, or the texts of parts joined without anything between. */
function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  let text = '';
  for (const part of content as unknown[]) {
    if (isObject(part) && typeof part['text'] === 'string') text += part['text'];
  }
  return text;
}
