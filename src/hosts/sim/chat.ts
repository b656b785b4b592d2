import type { Accelerator } from '../../simulation/accelerator/accelerator.ts';
import { badRequest, HostFault } from '../fault.ts';
import { type Exchange, jsonObject } from '../listener.ts';
import { Cut, run } from './generate.ts';
import { digest, tokensOfMessages, tokensOfText, wordAt } from './text.ts';

/** Tokens of an answer whose length was not asked for. */
const ANSWER_TOKENS = 64;

/** What chat and completions have in common, and where they differ. */
interface Dialect {
  idPrefix: string;
  object: string;
  chunkObject: string;
  /** A whole answer's choice. */
  choice(text: string): object;
  /** A piece's choice; `text` is undefined in the last, empty one. */
  delta(text: string | undefined, first: boolean): object;
}

const CHAT: Dialect = {
  idPrefix: 'chatcmpl',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  choice: (text) => ({ message: { role: 'assistant', content: text, refusal: null } }),
  delta: (text, first) => ({
    delta: text === undefined ? {} : { ...(first && { role: 'assistant' }), content: text },
  }),
};

const COMPLETION: Dialect = {
  idPrefix: 'cmpl',
  object: 'text_completion',
  chunkObject: 'text_completion',
  choice: (text) => ({ text }),
  delta: (text) => ({ text: text ?? '' }),
};

interface Order {
  promptTokens: number;
  outputTokens: number;
  /** Whether the answer ends for want of room. */
  limited: boolean;
  stream: boolean;
  includeUsage: boolean;
  /** Stands for the prompt: the same one gets the same words. */
  subject: number;
}

/** The model as its callers see it. */
export interface Served {
  model: string;
  accelerator: Accelerator;
  /** Tokens of prompt and answer together. */
  contextTokensMax: number;
  /** Milliseconds since the Unix epoch. */
  wall(): number;
  /** A number unlike those before it, for ids. */
  serial(): string;
}

/** `POST /v1/chat/completions`. */
export async function answerChat(served: Served, exchange: Exchange): Promise<void> {
  const body = jsonObject(exchange.body);
  checkModel(served, body);
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badRequest('messages must be a list of one message or more', 'messages');
  }
  const tokens = tokensOfMessages(messages);
  await answer(served, exchange, CHAT, readOrder(served, body, tokens, JSON.stringify(messages)));
}

/** `POST /v1/completions`: one prompt. */
export async function answerCompletion(served: Served, exchange: Exchange): Promise<void> {
  const body = jsonObject(exchange.body);
  checkModel(served, body);
  const prompt = Array.isArray(body.prompt) && body.prompt.length === 1 ? body.prompt[0] : body.prompt;
  if (typeof prompt !== 'string') throw badRequest('prompt must be a text', 'prompt');
  await answer(
    served,
    exchange,
    COMPLETION,
    readOrder(served, body, Math.max(1, tokensOfText(prompt)), prompt),
  );
}

/** An engine knows one model and says so of any other. */
export function checkModel(served: Served, body: Record<string, unknown>): void {
  if (typeof body.model !== 'string') throw badRequest('model must be a text', 'model');
  if (body.model !== served.model) {
    throw new HostFault(404, `the model '${body.model}' does not exist`, {
      code: 'model_not_found',
      param: 'model',
    });
  }
}

function readOrder(
  served: Served,
  body: Record<string, unknown>,
  promptTokens: number,
  subject: string,
): Order {
  const asked = positive(body, 'max_completion_tokens') ?? positive(body, 'max_tokens');
  if ((positive(body, 'n') ?? 1) !== 1) throw badRequest('n must be 1: one answer at a time', 'n');
  const room = served.contextTokensMax - promptTokens;
  if (room < (asked ?? 1)) {
    throw badRequest(
      `This model's maximum context length is ${served.contextTokensMax} tokens. However, you requested ` +
        `${promptTokens + (asked ?? 1)} tokens (${promptTokens} in the messages, ${asked ?? 1} in the completion).`,
      'messages',
      'context_length_exceeded',
    );
  }
  const outputTokens = asked ?? Math.min(ANSWER_TOKENS, room);
  const streamOptions = body.stream_options as { include_usage?: unknown } | null | undefined;
  return {
    promptTokens,
    outputTokens,
    limited: asked !== undefined || outputTokens < ANSWER_TOKENS,
    stream: body.stream === true,
    includeUsage: streamOptions?.include_usage === true,
    subject: digest(subject),
  };
}

function positive(body: Record<string, unknown>, name: string): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw badRequest(`${name} must be a whole number of 1 or more`, name);
  }
  return value as number;
}

/** What the head and the end of an answer say, whole or streamed. */
interface Frame {
  base: { id: string; object: string; created: number; model: string };
  finish: 'length' | 'stop';
  usage: object;
}

async function answer(served: Served, exchange: Exchange, dialect: Dialect, order: Order): Promise<void> {
  const { promptTokens, outputTokens } = order;
  const frame: Frame = {
    base: {
      id: `${dialect.idPrefix}-${served.serial()}`,
      object: order.stream ? dialect.chunkObject : dialect.object,
      created: Math.floor(served.wall() / 1000),
      model: served.model,
    },
    finish: order.limited ? 'length' : 'stop',
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: outputTokens,
      total_tokens: promptTokens + outputTokens,
    },
  };
  const send = order.stream ? sendStream : sendWhole;
  await send(served, exchange, dialect, order, frame);
}

async function sendWhole(
  served: Served,
  exchange: Exchange,
  dialect: Dialect,
  order: Order,
  { base, finish, usage }: Frame,
): Promise<void> {
  let text = '';
  try {
    await run(served.accelerator, order, exchange.gone, (index) => {
      text += wordAt(order.subject, index);
    });
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    exchange.cut(JSON.stringify({ ...base, choices: [{ index: 0, ...dialect.choice(text) }] }));
    return;
  }
  const choice = { index: 0, ...dialect.choice(text), logprobs: null, finish_reason: finish };
  exchange.answer(200, { ...base, choices: [choice], usage });
}

/** The head goes out with the first token, so that a request that fails before it gets a status of its own. */
async function sendStream(
  served: Served,
  exchange: Exchange,
  dialect: Dialect,
  order: Order,
  { base, finish, usage }: Frame,
): Promise<void> {
  const outbox = new Outbox(exchange);
  const chunk = (choices: object[], itsUsage: object | null) =>
    outbox.push({ ...base, choices, ...(order.includeUsage && { usage: itsUsage }) });
  const piece = (text: string | undefined, first: boolean, reason: string | null) =>
    chunk([{ index: 0, ...dialect.delta(text, first), logprobs: null, finish_reason: reason }], null);
  try {
    await run(served.accelerator, order, exchange.gone, (index) => {
      if (index === 0) exchange.openEvents();
      piece(wordAt(order.subject, index), index === 0, null);
    });
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    exchange.cut('');
    return;
  }
  piece(undefined, false, finish);
  if (order.includeUsage) chunk([], usage);
  outbox.push('[DONE]');
  await outbox.empty;
  exchange.endEvents();
}

/**
 * Events on their way to a caller. The accelerator does not wait for one that reads slowly, as engines do not; what waits here is
 * bounded by the length of the answer.
 */
class Outbox {
  readonly #exchange: Exchange;
  readonly #waiting: (object | '[DONE]')[] = [];
  /** Resolves once all that was pushed so far has been written, or the caller has left. */
  empty: Promise<void> = Promise.resolve();
  #sending = false;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  push(event: object | '[DONE]'): void {
    this.#waiting.push(event);
    if (!this.#sending) this.empty = this.#send();
  }

  async #send(): Promise<void> {
    this.#sending = true;
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      await this.#exchange.sendEvent(event);
    }
    this.#sending = false;
  }
}
