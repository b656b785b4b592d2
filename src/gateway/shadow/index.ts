import { Bag } from '../../kernel/bag.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { WorkerMetrics } from '../../telemetry/metrics.ts';
import type { BufferBudget } from '../buffer-budget.ts';
import { weightOf } from '../cost.ts';
import type { EndpointWatch } from '../endpoint-watch.ts';
import type { Exchange } from '../exchange.ts';
import { isPinned, isSequence } from '../ladder.ts';
import type { Endpoint } from '../state/endpoint.ts';
import { speaks } from '../state/targets.ts';
import type { Backend, World } from '../state/world.ts';
import { ShadowCopy, type ShadowOutcome } from './copy.ts';

export interface ShadowDeps {
  clock: Clock;
  random: Random;
  timers: Timers;
  world: World;
  metrics: WorkerMetrics;
  buffers: BufferBudget;
  watch: EndpointWatch;
}

/**
 * Sends copies of requests to backends whose answers nobody waits for. A copy is made in a turn of its own after the request
 * itself was sent, on the shadow's own connections and within its limits; it never waits, is never tried again, and is
 * neither counted nor charged as a request. Those on their way are bounded by the shadows' places.
 */
export class ShadowCopies {
  readonly #deps: ShadowDeps;
  readonly #running = new Bag<ShadowCopy>();
  #closed = false;

  constructor(deps: ShadowDeps) {
    this.#deps = deps;
  }

  /** To be called when a request of a route that has shadows was sent for the first time. */
  copy(x: Exchange): void {
    const call = x.call!;
    // What changes the state of an engine, or asks about its models, is for the one that was asked.
    if ((call.protocol === 'oip' && call.kind !== 'infer') || isSequence(x) || isPinned(x)) return;
    const { random, timers } = this.#deps;
    for (const { backend, percent } of x.route!.shadows!) {
      if (!speaks(backend, call.protocol)) continue;
      if (percent >= 100 || random.next() * 100 < percent) timers.set(0, () => this.#send(x, backend.name));
    }
  }

  /** The worker leaves: nobody will hear what comes of those on their way. */
  close(): void {
    this.#closed = true;
    for (const copy of this.#running) copy.drop();
  }

  #send(x: Exchange, name: string): void {
    const { clock, world, buffers } = this.#deps;
    const backend = world.backends.get(name);
    if (backend?.host?.state === 'idle') world.wakeHost(backend, x.id); // for the copies that follow
    const endpoint = this.#closed || !backend ? undefined : freeEndpoint(backend, clock.mono());
    const bytes = x.caller.body.length;
    if (!backend || !endpoint || !buffers.take(bytes)) {
      this.#count(x, name, 'dropped');
      return;
    }
    if (!endpoint.take(weightOf(x.cost), 1)) {
      buffers.give(bytes);
      this.#count(x, name, 'dropped');
      return;
    }
    const copy = new ShadowCopy(x, backend, endpoint, {
      ...this.#deps,
      ended: (outcome) => this.#count(x, name, outcome),
      over: () => {
        buffers.give(bytes);
        this.#running.delete(copy);
      },
    });
    this.#running.add(copy);
    copy.start();
  }

  #count(x: Exchange, backend: string, outcome: ShadowOutcome): void {
    this.#deps.metrics.shadows.of(x.route!.name, backend, outcome).add();
  }
}

/** The endpoint with the least in flight that may be used and has a free place, where no caller waits for one. */
function freeEndpoint({ line, endpoints }: Backend, now: number): Endpoint | undefined {
  if (line.length > 0) return undefined;
  let found: Endpoint | undefined;
  for (const endpoint of endpoints) {
    if (endpoint.waitMs(now) > 0 || !endpoint.hasRoom) continue;
    if (!found || endpoint.inflight < found.inflight) found = endpoint;
  }
  return found;
}
