import type { BackendSettings } from '../../config/schema/index.ts';
import { seededRandom } from '../../kernel/random.ts';
import { pause } from '../../kernel/timers.ts';
import { Accelerator } from '../../simulation/accelerator/accelerator.ts';
import type { HostOrder, HostServer, Serve } from '../contracts.ts';
import { type Handler, openListener } from '../listener.ts';
import { answerChat, answerCompletion, type Served } from './chat.ts';
import { answerEmbeddings } from './embeddings.ts';
import { gaugesOf } from './gauges.ts';
import { oipHandler } from './oip.ts';

export type SimSettings = Extract<BackendSettings, { engine: 'sim' }>;

/** Serves a simulated accelerator as an engine would. Resolves once the cold start that its profile asks for is over. */
export const serveSim: Serve<SimSettings> = async (order) => {
  const { profile } = order.settings;
  const random = seededRandom(profile.seed);
  if (profile.coldStart > 0) {
    order.note(`starting: ${profile.coldStart} ms, as its profile asks`);
    await pause(order.timers, profile.coldStart);
  }
  const accelerator = new Accelerator({ ...profile, coldStart: 0 }, order.clock, order.timers, random);
  const route = routes(servedBy(order, accelerator));
  const listener = await openListener({ route }, order.timers);
  const server: HostServer = {
    address: `${listener.origin}/v1`,
    async close(withinMs) {
      await listener.close(withinMs);
      accelerator.close();
    },
  };
  return server;
};

function servedBy(order: HostOrder<SimSettings>, accelerator: Accelerator): Served {
  const start = Math.floor(order.random.next() * 36 ** 6).toString(36);
  let count = 0;
  return {
    model: order.settings.model,
    accelerator,
    contextTokensMax: order.settings.profile.kvTokensMax,
    wall: () => order.clock.wall(),
    serial: () => `sim${start}${(count++).toString(36)}`,
  };
}

function routes(served: Served): (method: string, path: string) => Handler | undefined {
  const fixed: Record<string, Handler> = {
    'POST /v1/chat/completions': (exchange) => answerChat(served, exchange),
    'POST /v1/completions': (exchange) => answerCompletion(served, exchange),
    'POST /v1/embeddings': (exchange) => answerEmbeddings(served, exchange),
    'GET /v1/models': (exchange) => exchange.answer(200, modelList(served)),
    'GET /health': (exchange) => exchange.answer(200, { status: 'ok' }),
    'GET /metrics': (exchange) =>
      exchange.answer(200, gaugesOf(served.accelerator.load(), served.contextTokensMax), {
        'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      }),
  };
  return (method, path) => fixed[`${method} ${path}`] ?? oipHandler(served, method, path);
}

function modelList(served: Served): object {
  const model = { id: served.model, object: 'model', created: 0, owned_by: 'armature' };
  return { object: 'list', data: [{ ...model, max_model_len: served.contextTokensMax }] };
}
