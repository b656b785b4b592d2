import { Bag } from '../../kernel/bag.ts';
import type { BufferBudget } from '../buffer-budget.ts';
import { weightOf } from '../cost.ts';
import type { EndpointWatch } from '../endpoint-watch.ts';
import type { Exchange } from '../exchange.ts';
import type { Path } from '../path.ts';
import type { Endpoint } from '../state/endpoint.ts';
import { speaks } from '../state/targets.ts';
import type { Backend, Shadow, World } from '../state/world.ts';
import { Comparisons, type ComparisonsDeps } from './comparisons.ts';
import { ShadowCopy, type ShadowOutcome } from './copy.ts';
import { fenced } from './effects.ts';
import { CallerSide, type ComparedShadow, Pair, type PairingDeps } from './pairing.ts';
import { ShadowBudget } from './shadow-budget.ts';

export interface ShadowDeps extends ComparisonsDeps {
  world: World;
  buffers: BufferBudget;
  watch: EndpointWatch;
}

/**
 * Sends copies of requests to backends whose answers nobody waits for. A copy is made in a turn of its own after the request
 * itself was sent, on the shadow's own connections and within its limits; it never waits, is never tried again, and is
 * neither counted nor charged as a request. Those on their way are bounded by the shadows' places, and by a share of the room
 * for bodies and buffers.
 */
export class ShadowCopies {
  readonly #deps: ShadowDeps;
  readonly #running = new Bag<ShadowCopy>();
  readonly #comparisons: Comparisons;
  readonly #budget: ShadowBudget;
  #closed = false;

  constructor(deps: ShadowDeps) {
    this.#deps = deps;
    this.#comparisons = new Comparisons(deps);
    this.#budget = new ShadowBudget(deps.buffers);
  }

  /** To be called when a request of a route that has shadows was sent for the first time. */
  copy(path: Path, x: Exchange): void {
    const call = x.call!;
    // A question about an engine's models is for the one that was asked; what Armature asks for its own ends is nobody's traffic.
    if ((call.protocol === 'oip' && call.kind !== 'infer') || x.charged === 'nothing' || x.over) return;
    const { random, timers } = this.#deps;
    let caller: CallerSide | undefined;
    for (const shadow of x.route!.shadows!) {
      if (!speaks(shadow.backend, call.protocol)) continue;
      // What is released needs no copy of what it answers itself.
      if (shadow.release !== undefined && x.backend?.name === shadow.backend.name) continue;
      if (shadow.percent < 100 && random.next() * 100 >= shadow.percent) continue;
      let pair: Pair | undefined;
      if (isCompared(shadow))
        pair = new Pair((caller ??= new CallerSide(x, this.#budget)), shadow, this.#pairing(path));
      timers.set(0, () => this.#send(x, shadow.backend.name, pair));
    }
  }

  /** The worker leaves: nobody will hear what comes of those on their way. */
  close(): void {
    this.#closed = true;
    for (const copy of this.#running) copy.drop();
    this.#comparisons.close();
  }

  #pairing(path: Path): PairingDeps {
    return {
      budget: this.#budget,
      compare: (pair) => this.#comparisons.add(path, pair),
      skipped: (x, shadow, cause) => this.#comparisons.skipped(x, shadow, cause),
    };
  }

  #send(x: Exchange, name: string, pair: Pair | undefined): void {
    const { clock, world } = this.#deps;
    const backend = world.backends.get(name);
    const fence = backend && fenced(x, backend);
    if (fence !== undefined) {
      this.#count(x, name, 'fenced');
      pair?.copyEnded(fence);
      return;
    }
    const dropped = () => {
      this.#count(x, name, 'dropped');
      pair?.copyEnded('dropped');
    };
    if (backend?.host?.state === 'idle') world.wakeHost(backend, x.id); // for the copies that follow
    const endpoint = this.#closed || !backend ? undefined : freeEndpoint(backend, clock.mono());
    const bytes = x.caller.body.length;
    if (!backend || !endpoint || !this.#budget.take(bytes)) {
      dropped();
      return;
    }
    if (!endpoint.take(weightOf(x.cost), 1)) {
      this.#budget.give(bytes);
      dropped();
      return;
    }
    const copy = new ShadowCopy(x, backend, endpoint, {
      ...this.#deps,
      ended: (outcome) => {
        this.#count(x, name, outcome);
        pair?.copyEnded(outcome);
      },
      over: () => {
        this.#budget.give(bytes);
        this.#running.delete(copy);
      },
      listen: pair && ((own) => pair.listen(own)),
    });
    this.#running.add(copy);
    copy.start();
  }

  #count(x: Exchange, backend: string, outcome: ShadowOutcome | 'fenced'): void {
    this.#deps.metrics.shadows.of(x.route!.name, backend, outcome).add();
  }
}

function isCompared(shadow: Shadow): shadow is ComparedShadow {
  return shadow.compare !== undefined;
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
