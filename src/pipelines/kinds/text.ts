import type { Filling, StageAsk, StageKind, StageSettings, StageValue } from './contracts.ts';

type Json = Record<string, unknown>;
type Extras = Readonly<Record<string, unknown>>;

/** Text generators: a chat, or the continuation of a prompt. */

export const chat: StageKind = {
  name: 'chat',
  streams: true,
  ask(stage, route, filling, stream, extras) {
    const messages = stage.messages
      ? stage.messages.map((message) => filled(message, filling))
      : [{ role: 'user', content: filling.text(stage.input ?? '') }];
    return asked('/v1/chat/completions', route, { messages }, stage, stream, extras);
  },
  read(_stage, body) {
    const message = firstChoice(body)?.['message'];
    if (!isObject(message)) return undefined;
    const text = textOf(message['content']);
    const calls = message['tool_calls'];
    if (text === undefined) {
      return Array.isArray(calls) && calls.length > 0 ? { text: '', json: calls } : undefined;
    }
    return Array.isArray(calls) && calls.length > 0 ? { text, json: calls } : { text };
  },
};

export const completions: StageKind = {
  name: 'completions',
  streams: true,
  ask(stage, route, filling, stream, extras) {
    const prompt = filling.text(stage.input ?? '');
    return asked('/v1/completions', route, { prompt }, stage, stream, extras);
  },
  read(_stage, body): StageValue | undefined {
    const text = firstChoice(body)?.['text'];
    return typeof text === 'string' ? { text } : undefined;
  },
};

function asked(
  target: string,
  model: string,
  what: Json,
  _stage: StageSettings,
  stream: boolean,
  extras: Extras,
): StageAsk {
  const body = { ...extras, model, ...what, stream };
  return { target, body: Buffer.from(JSON.stringify(body)) };
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
  let answer: unknown;
  try {
    answer = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined; // no JSON: no answer
  }
  const choices = isObject(answer) ? answer['choices'] : undefined;
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

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
