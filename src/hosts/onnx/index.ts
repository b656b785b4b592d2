import { availableParallelism } from 'node:os';
import type { LocalBackendSettings } from '../../config/schema/index.ts';
import { embeddingsList } from '../../protocols/openai/embeddings.ts';
import type { HostOrder, HostServer } from '../contracts.ts';
import { badRequest } from '../fault.ts';
import { type Exchange, type Handler, jsonObject, openListener } from '../listener.ts';
import { gauges, modelList } from '../pages.ts';
import { Places } from '../places.ts';
import { Batcher } from './batcher.ts';
import { parseEmbedding } from './embedding-request.ts';
import { oipHandler } from './oip.ts';
import { type Loaded, OnnxSession } from './session.ts';

/** Inferences that may wait for the model; the gateway's own limits lie below by default. */
const WAITING_MAX = 256;

/**
 * A text of more characters a token is refused unread: no language comes near, and to make tokens of megabytes would hold
 * up everybody else.
 */
const TOKEN_CHARACTERS_MAX = 64;

/** What the files are, found by whoever starts the host. */
export interface OnnxOrder extends HostOrder<LocalBackendSettings> {
  modelPath: string;
  /** Makes it a model of embeddings; without it, it takes and gives tensors. */
  tokenizerPath: string | undefined;
  /** It is a model of embeddings without a tokenizer: it takes token ids, and tensors. */
  prepared?: boolean;
}

/**
 * Serves one ONNX model: embeddings as OpenAI has them, or tensors over the Open Inference Protocol; `/health`,
 * `/v1/models`, and load gauges at `/metrics`.
 */
export async function serveOnnx(order: OnnxOrder): Promise<HostServer> {
  const { host, model } = order.settings;
  order.note(`loading ${model}`);
  const session = await OnnxSession.open({
    modelPath: order.modelPath,
    tokenizerPath: order.tokenizerPath,
    prepared: order.prepared === true,
    threads: host.threads ?? Math.max(1, Math.floor(availableParallelism() / 2)),
    tokensMax: host.contextTokensMax,
  });
  const startedSeconds = Math.floor(order.clock.wall() / 1000);
  const { embedding } = session.loaded;
  const batcher = new Batcher((rows) => session.run({ what: 'embed', rows }), host.batchTokensMax);
  const places = new Places(1, WAITING_MAX);

  const routes: Record<string, Handler> = {
    'GET /health': (exchange) => exchange.answer(200, { status: 'ok' }),
    'GET /v1/models': (exchange) => exchange.answer(200, modelList(model, startedSeconds)),
    'GET /metrics': (exchange) =>
      gauges(exchange, {
        waiting: batcher.waiting + places.waiting,
        running: batcher.running + places.running,
      }),
  };
  routes['POST /v1/chat/completions'] = routes['POST /v1/completions'] = () => {
    throw badRequest(
      `${model} gives ${embedding ? 'embeddings' : 'tensors'}, and does not generate text`,
      'model',
    );
  };
  if (embedding) {
    routes['POST /v1/embeddings'] = (exchange) =>
      answerEmbedding({ name: model, session, batcher, embedding }, exchange);
  }
  const tensorModel = {
    name: model,
    session,
    places,
    elementsMax: order.prepared ? host.batchTokensMax : Number.POSITIVE_INFINITY,
  };
  const takesTensors = !embedding || order.prepared === true;
  const listener = await openListener(
    {
      route: (method, path) =>
        routes[`${method} ${path}`] ?? (takesTensors ? oipHandler(tensorModel, method, path) : undefined),
    },
    order.timers,
    order.warn,
  );

  return {
    address: `${listener.origin}/v1`,
    async close(withinMs) {
      await listener.close(withinMs);
      await session.close();
    },
  };
}

interface EmbeddingModel {
  name: string;
  session: OnnxSession;
  batcher: Batcher;
  embedding: NonNullable<Loaded['embedding']>;
}

async function answerEmbedding(
  { name, session, batcher, embedding }: EmbeddingModel,
  exchange: Exchange,
): Promise<void> {
  const { inputs, base64 } = parseEmbedding(jsonObject(exchange.body), embedding);
  const rows: number[][] = [];
  for (const input of inputs) {
    const row = typeof input === 'string' ? await tokensOf(session, input, embedding) : input;
    checkLength(row.length, embedding.tokensMax);
    rows.push(row);
  }

  const vectors = await batcher.embed(rows, exchange.gone);
  if (!vectors) return;
  const tokens = rows.reduce((sum, row) => sum + row.length, 0);
  exchange.answer(200, embeddingsList(vectors, { model: name, tokens, base64 }));
}

async function tokensOf(
  session: OnnxSession,
  text: string,
  { tokensMax, vocabulary }: EmbeddingModel['embedding'],
): Promise<number[]> {
  if (vocabulary === undefined) {
    throw badRequest('input: this model takes token ids alone; a route with `prepare` makes them', 'input');
  }
  if (text.length <= tokensMax * TOKEN_CHARACTERS_MAX) return session.run({ what: 'tokenize', text });
  throw badRequest(
    `This model's maximum context length is ${tokensMax} tokens, which a text of ${text.length} characters exceeds. Please reduce your prompt.`,
    'input',
    'context_length_exceeded',
  );
}

function checkLength(tokens: number, tokensMax: number): void {
  if (tokens <= tokensMax) return;
  throw badRequest(
    `This model's maximum context length is ${tokensMax} tokens, however you requested ${tokens} tokens (${tokens} in your prompt; 0 for the completion). Please reduce your prompt; or completion length.`,
    'input',
    'context_length_exceeded',
  );
}
