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

async function answer(served: Served, exchange: Exchange, dialect: Dialect, order: Order): Promise<void> {
  const id = `${dialect.idPrefix}-${served.serial()}`;
  const created = Math.floor(served.wall() / 1000);
  const usage = {
    prompt_tokens: order.promptTokens,
    completion_tokens: order.outputTokens,
    total_tokens: order.promptTokens + order.outputTokens,
  };
  const finish = order.limited ? 'length' : 'stop';
  const base = {
    id,
    object: order.stream ? dialect.chunkObject : dialect.object,
    created,
    model: served.model,
  };
  if (order.stream) {
    await stream(served, exchange, dialect, order, base, finish, usage);
    return;
  }
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
  exchange.answer(200, {
    ...base,
    choices: [{ index: 0, ...dialect.choice(text), logprobs: null, finish_reason: finish }],
    usage,
  });
}

/** The head goes out with the first token, so that a request that fails before it gets a status of its own. */
async function stream(
  served: Served,
  exchange: Exchange,
  dialect: Dialect,
  order: Order,
  base: object,
  finish: string,
  usage: object,
): Promise<void> {
  const chunk = (choices: object[], itsUsage: object | null) => ({
    ...base,
    choices,
    ...(order.includeUsage && { usage: itsUsage }),
  });
  // Tokens are not held back for a slow caller, as engines do not: what waits is bounded by the answer's own length.
  const send = (data: object | '[DONE]') => void exchange.sendEvent(data);
  try {
    await run(served.accelerator, order, exchange.gone, (index) => {
      if (index === 0) exchange.openEvents();
      const piece = dialect.delta(wordAt(order.subject, index), index === 0);
      send(chunk([{ index: 0, ...piece, logprobs: null, finish_reason: null }], null));
    });
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    exchange.cut('');
    return;
  }
  send(
    chunk([{ index: 0, ...dialect.delta(undefined, false), logprobs: null, finish_reason: finish }], null),
  );
  if (order.includeUsage) send(chunk([], usage));
  send('[DONE]');
  exchange.endEvents();
}
