import { eventMaker } from '../../src/events/event-maker.ts';
import type { StatefulEndpoints } from '../../src/gateway/contracts.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import type { VirtualTime } from '../../src/kernel/virtual-time.ts';
import { Conversations } from '../../src/sessions/conversations/index.ts';
import { Responses } from '../../src/sessions/responses/index.ts';
import { sessionsInMemory } from '../../src/store/memory/sessions.ts';
import type { SessionsStore } from '../../src/store/sessions.ts';
import type { Json } from '../upstream/sse.ts';
import { type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

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
