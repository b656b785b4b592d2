import { eventMaker } from '../../src/events/event-maker.ts';
import type { StatefulEndpoints } from '../../src/gateway/contracts.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { VirtualTime } from '../../src/kernel/virtual-time.ts';
import { Conversations } from '../../src/sessions/conversations/index.ts';
import { Responses } from '../../src/sessions/responses/index.ts';
import { sessionsInMemory } from '../../src/store/memory/sessions.ts';
import type { SessionsStore } from '../../src/store/sessions.ts';
import type { Json } from '../upstream/sse.ts';
import { chatAnswer, type Engine, status, type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

/** A virtual gateway that keeps responses and conversations in memory. */
export class SessionsGateway extends VirtualGateway {
  readonly store: SessionsStore;

  /** `changed`: the store as its workers see it. */
  constructor(config: unknown, changed: (store: SessionsStore) => SessionsStore = (store) => store) {
    const store = changed(sessionsInMemory());
    super(config, 1, undefined, undefined, (time) => keeping(store, time));
    this.store = store;
  }

  /** One turn, as far as it comes within ten seconds. */
  async turn(body: object, headers?: Record<string, string>): Promise<VirtualCaller> {
    return this.call('POST', '/v1/responses', { model: 'chat', input: 'Hi', ...body }, headers);
  }

  async call(method: string, target: string, body: unknown = '', headers?: Record<string, string>) {
    const caller = this.send(method, target, body, headers);
    await this.time.advance(10_000);
    return caller;
  }
}

function keeping(store: SessionsStore, time: VirtualTime): StatefulEndpoints {
  const deps = {
    store,
    clock: time,
    timers: time,
    boot: 'boot',
    makeEvent: eventMaker(time, seededRandom(2)),
  };
  const [responses, conversations] = [new Responses(deps), new Conversations(deps)];
  return {
    start: () => undefined,
    take: (path, x) => (x.stateful!.stateful === 'responses' ? responses : conversations).take(path, x),
    drain: () => undefined,
    close: () => store.close(),
    batches: {},
  };
}

/** The events of a stream of a response. */
export function eventsOf(caller: VirtualCaller): Json[] {
  return caller.text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const [name, data] = block.split('\n') as [string, string];
      const event = JSON.parse(data.slice('data: '.length)) as Json;
      if (name !== `event: ${event.type}`) throw new Error(`${name} tells ${event.type}`);
      return event;
    });
}

export const ONE = 'http://a:1';
const TWO = 'http://b:1';

const backend = (origin: string) => ({ engine: 'openai', model: 'm', endpoints: [`${origin}/v1`] });
export const config = (route: object = {}, more: object = {}) => ({
  backends: { b1: backend(ONE), b2: backend(TWO) },
  routes: { chat: { targets: [{ backend: 'b1' }], deadline: '5s', ...route } },
  ...more,
});

export function gateway(
  engine: Engine = chatAnswer('Hello'),
  route: object = {},
  changed?: (store: SessionsStore) => SessionsStore,
) {
  const it = new SessionsGateway(config(route), changed);
  it.engines.set(ONE, engine);
  it.engines.set(TWO, engine);
  return it;
}

export const json = (caller: { text: string }) => JSON.parse(caller.text);
export const sent = (it: SessionsGateway) => JSON.parse(String(it.served.at(-1)!.request.body));

/** A whole answer of one choice. */
export function answering(choice: object, usage?: object): Engine {
  return status(200, { choices: [{ index: 0, ...choice }], usage }, {}, 5);
}

/** The deltas of a stream, then its finish reason. */
export function streaming(deltas: object[], finish = 'stop'): Engine {
  return ({ sink, time }) =>
    void time.set(5, () => {
      const chunk = (choice: object) =>
        Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
      sink.onHead(200, { 'content-type': 'text/event-stream' });
      for (const delta of deltas) sink.onData(chunk({ delta }));
      sink.onData(chunk({ delta: {}, finish_reason: finish }));
      sink.onData(Buffer.from('data: [DONE]\n\n'));
      sink.onEnd();
    });
}
