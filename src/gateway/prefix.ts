import { crc32 } from 'node:zlib';
import { hash32, mix32 } from '../kernel/hash.ts';
import { BLOCK_BYTES_MIN, hashBeginnings } from '../policies/prefix-affinity/blocks.ts';
import type { Holders } from '../policies/prefix-affinity/holders.ts';
import type { PlacedView, PrefixInput } from '../policies/prefix-affinity/index.ts';
import { promptPlace } from '../protocols/openai/prompt.ts';
import { weightOf } from './cost.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './state/endpoint.ts';

const NONE = new Uint32Array(0);

/**
 * What the beginnings of a request's prompt are known by; none where its route does not ask, the prompt is short, or there
 * is none that an engine would remember. Tenants have nothing in common: nobody learns what another has asked.
 */
export function beginningsOf(x: Exchange): Uint32Array {
  if (x.beginnings) return x.beginnings;
  x.beginnings = NONE;
  const { body } = x.caller;
  const { protocol, kind } = x.call!;
  if (protocol !== 'openai' || kind === 'embeddings' || body.length < BLOCK_BYTES_MIN) return NONE;
  const place = promptPlace(body);
  if (!place) return NONE;
  const { prompt, tools } = place;
  // Engines put tools before the messages: with others, nothing is in common.
  const before = tools ? crc32(body.subarray(tools.start, tools.end)) : 0;
  x.beginnings = hashBeginnings(body, prompt.start, prompt.end, mix32(before) ^ hash32(x.tenant));
  return x.beginnings;
}

/** Owners of one beginning; used again for each. */
const owners: number[] = [];

/** What is known of the endpoints, for a prompt with these beginnings. */
export function prefixInput(
  x: Exchange,
  endpoints: readonly Endpoint[],
  holders: Holders,
  beginnings: Uint32Array,
  now: number,
): PrefixInput {
  const { usual, loadOf } = loads(x, endpoints, now);
  const view = (at: number): PlacedView => ({ at, key: endpoints[at]!.key, load: loadOf(at) });
  let least = 0;
  for (let at = 1; at < endpoints.length; at++) if (loadOf(at) < loadOf(least)) least = at;

  // The longest beginning that an endpoint has which may be used.
  let matched = beginnings.length;
  let held: number[] = [];
  for (; matched > 0; matched--) {
    holders.ownersOf(beginnings[matched - 1]!, owners);
    held = placesOf(owners, endpoints);
    if (held.length > 0) break;
  }
  // It belongs where it differs from what is known: there every worker would put it that knows as much.
  const belongs = beginnings[Math.min(matched, beginnings.length - 1)]!;
  const byRank = (a: number, b: number) =>
    rank(beginnings[0]!, endpoints[b]!) - rank(beginnings[0]!, endpoints[a]!);
  return {
    blocks: beginnings.length,
    matched,
    grown: matched > 0 && holders.isWhole(beginnings[matched - 1]!),
    usual,
    holders: held.sort(byRank).map(view),
    home: view(homeOf(belongs, endpoints)),
    least: view(least),
  };
}

/** Requests of others count where every engine tells of them: what is not known is not zero. */
function loads(x: Exchange, endpoints: readonly Endpoint[], now: number) {
  let tokens = weightOf(x.cost);
  let requests = 1;
  let allTell = true;
  for (const endpoint of endpoints) {
    tokens += endpoint.tokensInFlight;
    requests += endpoint.inflight;
    if (endpoint.gauge?.others(now) === undefined) allTell = false;
  }
  const usual = tokens / requests;
  const loadOf = (at: number) => {
    const { tokensInFlight, gauge } = endpoints[at]!;
    return tokensInFlight + (allTell ? gauge!.others(now)! * usual : 0);
  };
  return { usual, loadOf };
}

function placesOf(hashes: readonly number[], endpoints: readonly Endpoint[]): number[] {
  const places: number[] = [];
  if (hashes.length === 0) return places;
  for (let at = 0; at < endpoints.length; at++) if (hashes.includes(endpoints[at]!.hash)) places.push(at);
  return places;
}

/** Rendezvous hashing: each beginning has its own order of the endpoints, in which the others do not matter. */
function rank(beginning: number, { hash }: Endpoint): number {
  return mix32(beginning ^ hash);
}

function homeOf(beginning: number, endpoints: readonly Endpoint[]): number {
  let best = 0;
  for (let at = 1; at < endpoints.length; at++) {
    if (rank(beginning, endpoints[at]!) > rank(beginning, endpoints[best]!)) best = at;
  }
  return best;
}
