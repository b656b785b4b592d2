import { eventMaker } from '../events/event-maker.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { FactSink } from './contracts.ts';
import type { Endpoint } from './state/endpoint.ts';
import type { World } from './state/world.ts';

/** Tells the ledger when an endpoint is fenced or comes back, and wakes those who wait for it when its time is over. */
export class EndpointWatch {
  readonly #clock: Clock;
  readonly #facts: FactSink;
  readonly #world: World;
  readonly #event: ReturnType<typeof eventMaker>;
  readonly #states = new WeakMap<Endpoint, { breaker: string; coolUntil: number }>();

  constructor(options: { clock: Clock; random: Random; facts: FactSink; world: World }) {
    this.#clock = options.clock;
    this.#facts = options.facts;
    this.#world = options.world;
    this.#event = eventMaker(options.clock, options.random);
  }

  /** To be called before a request is sent: whether it decides if a fenced endpoint is well again. */
  tries(endpoint: Endpoint, requestId: string): boolean {
    const wasOpen = endpoint.breaker.state === 'open';
    const trial = endpoint.breaker.decide(undefined, this.#clock.mono()).choice === 'trial';
    if (trial && wasOpen) this.changed(endpoint, requestId);
    return trial;
  }

  /** To be called after anything that may have changed the endpoint's state; `requestId` is what changed it. */
  changed(endpoint: Endpoint, requestId: string): void {
    const before = this.#states.get(endpoint);
    const breaker = endpoint.breaker.state;
    const { coolUntil } = endpoint;
    if (
      before
        ? before.breaker === breaker && before.coolUntil === coolUntil
        : breaker === 'closed' && coolUntil === 0
    )
      return;
    this.#states.set(endpoint, { breaker, coolUntil });
    if (breaker !== (before?.breaker ?? 'closed')) {
      const type = { open: 'breaker-opened', closed: 'breaker-closed', 'half-open': 'breaker-tried' }[
        breaker
      ];
      this.#tell(type, endpoint, requestId, { ...endpoint.breaker.figures() });
    }
    if (coolUntil > (before?.coolUntil ?? 0)) {
      this.#tell('endpoint-cooled', endpoint, requestId, {
        forMs: Math.round(coolUntil - this.#clock.mono()),
      });
    }
    this.#world.wakeWhenUsable(endpoint);
    const backend = this.#world.backends.get(endpoint.backend);
    if (backend && endpoint.waitMs(this.#clock.mono()) > 0) this.#world.wake(backend);
  }

  #tell(type: string, endpoint: Endpoint, requestId: string, data: Record<string, unknown>): void {
    const event = this.#event({
      type,
      subject: `endpoint:${endpoint.key}`,
      causes: [requestId],
      data: { backend: endpoint.backend, endpoint: endpoint.address, ...data },
    });
    endpoint.cause = event.id;
    this.#facts.push({ kind: 'event', event });
  }
}
