import { rendezvousScore } from '../../kernel/hash.ts';
import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

/** What is known of one endpoint at the moment of the choice. */
export interface EndpointView {
  key: string;
  /** Reckoned tokens, and requests, that this worker has at it now. */
  tokens: number;
  requests: number;
  /** How long such requests take there, and how old that is, milliseconds; undefined where nobody knows. */
  latencyMs?: number | undefined;
  ageMs?: number | undefined;
  /** Requests there that others sent, as the engine tells; undefined where it does not tell, or not of late. */
  others?: number | undefined;
}

/** Endpoints that may be used and have a free place. One at least. Only the ones decided on are read. */
export interface ChoiceInput {
  session: string | undefined;
  /** Tokens that the request itself is reckoned at. */
  tokens: number;
  count: number;
  keyOf(at: number): string;
  read(at: number): EndpointView;
}

/** How fast what was measured is forgotten, milliseconds: the time constant of peak-EWMA. */
const TAU_MS = 10_000;
/** Added to every latency, milliseconds: below it differences are noise. */
const NOISE_MS = 10;
/** Latencies that are less apart than this factor are taken to be the same: prompts of other lengths make as much. */
const ALIKE = 2;

/** Chooses the endpoint of less cost of two drawn at random, or a session's own. */
export const leastCostOfTwo: Policy<ChoiceInput, number> = {
  name: 'least-cost-of-two',
  version: 1,
  decide(input: ChoiceInput, _now: number, random: Random): Decision<number> {
    const { count, session } = input;
    if (count === 1) return chosen(input, 0, 'only-endpoint', {});
    if (session !== undefined) return chosen(input, bySession(input, session), 'endpoint-by-session', {});
    const first = Math.floor(random.next() * count);
    const second = (first + 1 + Math.floor(random.next() * (count - 1))) % count;
    return cheaper(input, first, second);
  },
};

function bySession(input: ChoiceInput, session: string): number {
  let best = 0;
  let bestScore = -1;
  for (let at = 0; at < input.count; at++) {
    const score = rendezvousScore(session, input.keyOf(at), 1);
    if (score > bestScore) {
      best = at;
      bestScore = score;
    }
  }
  return best;
}

function cheaper(input: ChoiceInput, first: number, second: number): Decision<number> {
  const a = input.read(first);
  const b = input.read(second);
  const figures: Record<string, string | number> = { drawn: `${first},${second}` };
  const usual = (a.tokens + b.tokens + input.tokens) / (a.requests + b.requests + 1);
  let loadA = (a.tokens + a.requests * usual) / 2;
  let loadB = (b.tokens + b.requests * usual) / 2;
  if (a.others !== undefined && b.others !== undefined && a.others + b.others > 0) {
    // What others sent is taken to be as long, on average, as what is known.
    loadA += a.others * usual;
    loadB += b.others * usual;
    figures['firstOthers'] = a.others;
    figures['secondOthers'] = b.others;
  }
  figures['first'] = Math.round(loadA);
  figures['second'] = Math.round(loadB);
  let [costA, costB] = [loadA + input.tokens, loadB + input.tokens];
  if (a.latencyMs !== undefined && b.latencyMs !== undefined) {
    const slow = slowness(a, b);
    costA *= slow;
    figures['firstMs'] = Math.round(a.latencyMs);
    figures['secondMs'] = Math.round(b.latencyMs);
  }
  return chosen(input, costA <= costB ? first : second, 'less-cost-of-two', figures);
}

/** How many times as long `a` takes as `b`, as far as what is known of them is still to be believed. */
function slowness(a: EndpointView, b: EndpointView): number {
  const slow = (a.latencyMs! + NOISE_MS) / (b.latencyMs! + NOISE_MS);
  // The slower one is asked less: what is known of it grows old, and it is tried again in the end.
  const kept = Math.exp(-(slow > 1 ? (a.ageMs ?? 0) : (b.ageMs ?? 0)) / TAU_MS);
  const believed = slow > 1 ? 1 + (slow - 1) * kept : 1 / (1 + (1 / slow - 1) * kept);
  return believed < ALIKE && believed > 1 / ALIKE ? 1 : believed;
}

function chosen(
  input: ChoiceInput,
  choice: number,
  code: string,
  figures: Record<string, string | number>,
): Decision<number> {
  return {
    choice,
    reason: { code, figures: { endpoint: input.keyOf(choice), endpoints: input.count, ...figures } },
  };
}

interface Recorded {
  session?: string | undefined;
  tokens: number;
  count: number;
  /** Of a draw: the two that were read, with their places. */
  read?: { at: number; view: EndpointView }[];
  /** Of a session, or where there is one alone: the keys of all. */
  keys?: string[];
}

/** What of the input was read for a decision, enough to replay it. */
export function readOf(input: ChoiceInput, decision: Decision<number>): unknown {
  const { session, tokens, count } = input;
  const drawn = decision.reason.figures['drawn'];
  const recorded: Recorded = { session, tokens, count };
  if (typeof drawn !== 'string') recorded.keys = Array.from({ length: count }, (_, at) => input.keyOf(at));
  else
    recorded.read = drawn.split(',').map((place) => ({ at: Number(place), view: input.read(Number(place)) }));
  return recorded;
}

/** The input of a recorded decision, made whole again; throws where something is asked that was not read then. */
export function restore(recorded: unknown): ChoiceInput {
  const { session, tokens, count, read, keys } = recorded as Recorded;
  const viewOf = (at: number) => read!.find((each) => each.at === at)!.view;
  return {
    session,
    tokens,
    count,
    keyOf: (at) => keys?.[at] ?? viewOf(at).key,
    read: viewOf,
  };
}
