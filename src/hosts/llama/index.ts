import type { LocalBackendSettings } from '../../config/schema/index.ts';
import { idMaker } from '../../kernel/ids.ts';
import type { HostOrder, HostServer } from '../contracts.ts';
import { badRequest } from '../fault.ts';
import { type Exchange, type Handler, jsonObject, openListener } from '../listener.ts';
import { gauges, modelList } from '../pages.ts';
import { CHAT, COMPLETION, chunk, type Envelope, type Form, tellTokens, usageOf } from './answers.ts';
import { type Job, LlamaEngine } from './engine.ts';
import { parseChat, parseCompletion } from './request.ts';

/** A prompt is made tokens of in one go, while nothing else of this host goes on. */
const TOKENIZED_CHARACTERS_MAX = 1_000_000;

/** What the model file is, found by whoever starts the host. */
export interface LlamaOrder extends HostOrder<LocalBackendSettings> {
  modelPath: string;
}

/**
 * Serves one GGUF model by llama.cpp: chat and completions as OpenAI has them, several requests in one batch, `/health`,
 * `/v1/models` and load gauges at `/metrics`.
 */
export async function serveLlama(order: LlamaOrder): Promise<HostServer> {
  const { host, model } = order.settings;
  order.note(`loading ${model}`);
  const engine = await LlamaEngine.load({
    modelPath: order.modelPath,
    threads: host.threads,
    sequences: host.sequences,
    contextTokensMax: host.contextTokensMax,
    random: order.random,
    warn: order.warn,
  });
  const startedSeconds = Math.floor(order.clock.wall() / 1000);
  const newId = idMaker('gen', order.random);
  const answering = (form: Form, read: (body: Record<string, unknown>) => Promise<ReadRequest>): Handler => {
    return async (exchange) => {
      const request = await read(jsonObject(exchange.body));
      const wall = order.clock.wall();
      const envelope = { id: form.idPrefix + newId(wall).slice(4), created: Math.floor(wall / 1000), model };
      await (request.stream ? stream : whole)(engine, exchange, form, envelope, request);
    };
  };

  const routes: Record<string, Handler> = {
    'GET /health': (exchange) => exchange.answer(200, { status: 'ok' }),
    'GET /v1/models': (exchange) =>
      exchange.answer(200, modelList(model, startedSeconds, { max_model_len: engine.contextTokensMax })),
    'GET /metrics': (exchange) =>
      gauges(exchange, {
        waiting: engine.places.waiting,
        running: engine.places.running,
        cacheUsed: engine.cacheUsed,
      }),
    'POST /v1/chat/completions': answering(CHAT, (body) => readChat(engine, body)),
    'POST /v1/completions': answering(COMPLETION, (body) => readCompletion(engine, body)),
    'POST /tokenize': (exchange) => exchange.answer(200, tokenize(engine, jsonObject(exchange.body))),
    'POST /v1/embeddings': () => {
      throw badRequest(`${model} generates text, and gives no embeddings`, 'model');
    },
  };
  const route = (method: string, path: string) => routes[`${method} ${path}`];
  const listener = await openListener({ route }, order.timers, order.warn);

  return {
    address: `${listener.origin}/v1`,
    async close(withinMs) {
      await listener.close(withinMs);
      await engine.dispose();
    },
  };
}

interface ReadRequest {
  job: Job;
  stream: boolean;
  includeUsage: boolean;
}

async function readChat(engine: LlamaEngine, body: Record<string, unknown>): Promise<ReadRequest> {
  const request = parseChat(body);
  const characters = request.messages.reduce((sum, { text }) => sum + text.length, 0);
  checkCharacters(engine, characters, 'messages');
  const prompt = engine.chatPrompt(request.messages);
  return toJob(engine, prompt, 'messages', request);
}

async function readCompletion(engine: LlamaEngine, body: Record<string, unknown>): Promise<ReadRequest> {
  const request = parseCompletion(body);
  if (typeof request.prompt === 'string') checkCharacters(engine, request.prompt.length, 'prompt');
  const prompt = engine.textPrompt(request.prompt);
  if (prompt.length === 0) throw badRequest('prompt: expected one token or more', 'prompt');
  return toJob(engine, prompt, 'prompt', request);
}

/** The tokens of the prompt that a chat would have, as vLLM tells them: who fits conversations to windows asks for it. */
function tokenize(engine: LlamaEngine, { messages }: Record<string, unknown>): Record<string, unknown> {
  const request = parseChat({ messages });
  const characters = request.messages.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > TOKENIZED_CHARACTERS_MAX) {
    throw badRequest(`messages: more than ${TOKENIZED_CHARACTERS_MAX} characters`, 'messages');
  }
  const tokens = engine.chatPrompt(request.messages);
  return { count: tokens.length, max_model_len: engine.contextTokensMax, tokens };
}

function checkCharacters(engine: LlamaEngine, characters: number, param: 'messages' | 'prompt'): void {
  if (!engine.surelyTooLong(characters)) return;
  throw badRequest(
    `This model's maximum context length is ${engine.contextTokensMax} tokens, which ${characters} characters exceed. Please reduce the length of the ${param}.`,
    param,
    'context_length_exceeded',
  );
}

async function toJob(
  engine: LlamaEngine,
  prompt: Job['prompt'],
  param: 'messages' | 'prompt',
  request: ReturnType<typeof parseChat> | ReturnType<typeof parseCompletion>,
): Promise<ReadRequest> {
  const room = engine.contextTokensMax - prompt.length;
  const asked = request.maxTokens ?? 1;
  if (asked > room) {
    const parts = `${prompt.length} in the ${param}, ${asked} in the completion`;
    throw badRequest(
      `This model's maximum context length is ${engine.contextTokensMax} tokens. However, you requested ${prompt.length + asked} tokens (${parts}). Please reduce the length of the ${param} or completion.`,
      param,
      'context_length_exceeded',
    );
  }
  return {
    job: {
      prompt,
      maxTokens: request.maxTokens ?? room,
      sampling: request.sampling,
      stop: request.stop,
      grammar: await engine.grammarOf(request.shape),
      topLogprobs: request.topLogprobs,
    },
    stream: request.stream,
    includeUsage: request.includeUsage,
  };
}

async function whole(
  engine: LlamaEngine,
  exchange: Exchange,
  form: Form,
  envelope: Envelope,
  { job }: ReadRequest,
): Promise<void> {
  const pieces = engine.generate(job, exchange.gone);
  const told = [];
  let text = '';
  let step = await pieces.next();
  for (; !step.done; step = await pieces.next()) {
    text += step.value.text;
    if (job.topLogprobs !== undefined) told.push(...tellTokens(step.value, (token) => engine.textOf(token)));
  }
  if (step.value.finish === 'left') return;
  const logprobs = job.topLogprobs === undefined ? null : form.logprobs(told, 0);
  exchange.answer(200, {
    id: envelope.id,
    object: form.object,
    created: envelope.created,
    model: envelope.model,
    choices: [{ index: 0, ...form.whole(text, logprobs), finish_reason: step.value.finish }],
    usage: usageOf(step.value),
  });
}

async function stream(
  engine: LlamaEngine,
  exchange: Exchange,
  form: Form,
  envelope: Envelope,
  { job, includeUsage }: ReadRequest,
): Promise<void> {
  const usage = includeUsage ? null : undefined;
  const pieces = engine.generate(job, exchange.gone);
  // The head waits for the first text, so that a failure until then is still told by its status.
  let step = await pieces.next();
  if (exchange.gone.aborted) return;
  exchange.openEvents();
  if (form.opening) await exchange.sendEvent(chunk(form, envelope, form.opening, null, usage));
  let at = 0;
  for (; !step.done; step = await pieces.next()) {
    const logprobs =
      job.topLogprobs === undefined
        ? null
        : form.logprobs(
            tellTokens(step.value, (token) => engine.textOf(token)),
            at,
          );
    at += step.value.text.length;
    await exchange.sendEvent(chunk(form, envelope, form.piece(step.value, logprobs), null, usage));
  }
  if (step.value.finish === 'left') return;
  await exchange.sendEvent(chunk(form, envelope, form.closing, step.value.finish, usage));
  if (includeUsage) {
    await exchange.sendEvent(chunk(form, envelope, undefined, null, usageOf(step.value)));
  }
  await exchange.sendEvent('[DONE]');
  exchange.endEvents();
}
