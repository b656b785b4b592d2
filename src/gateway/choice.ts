import type { ChoiceInput, EndpointView } from '../policies/least-cost-of-two/index.ts';
import { weightOf } from './cost.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './state/endpoint.ts';

/** What the choice of an endpoint is taken on: the endpoints as they are now, looked at where they are asked for. */
export class LiveChoice implements ChoiceInput {
  readonly session: string | undefined;
  readonly tokens: number;
  readonly #endpoints: readonly Endpoint[];
  readonly #stream: boolean;
  readonly #now: number;
  /** The two that were looked at last, so that the record holds what the decision was taken on. */
  #first: { at: number; view: EndpointView } | undefined;
  #second: { at: number; view: EndpointView } | undefined;

  constructor(x: Exchange, endpoints: readonly Endpoint[], now: number) {
    this.session = x.session;
    this.tokens = weightOf(x.cost);
    this.#endpoints = endpoints;
    this.#stream = x.call!.stream;
    this.#now = now;
  }

  get count(): number {
    return this.#endpoints.length;
  }

  keyOf(at: number): string {
    return this.#endpoints[at]!.key;
  }

  read(at: number): EndpointView {
    if (this.#first?.at === at) return this.#first.view;
    if (this.#second?.at === at) return this.#second.view;
    const view = viewOf(this.#endpoints[at]!, this.#stream, this.#now);
    this.#second = this.#first;
    this.#first = { at, view };
    return view;
  }
}

function viewOf(endpoint: Endpoint, stream: boolean, now: number): EndpointView {
  const { value, at } = stream ? endpoint.speed.firstToken : endpoint.speed.whole;
  return {
    key: endpoint.key,
    tokens: endpoint.tokensInFlight,
    requests: endpoint.inflight,
    latencyMs: value,
    ageMs: value === undefined ? undefined : now - at,
    others: endpoint.gauge?.others(now),
  };
}
