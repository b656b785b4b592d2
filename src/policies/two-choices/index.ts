import { rendezvousScore } from '../../kernel/hash.ts';
import type { Random } from '../../kernel/random.ts';
import type { Decision, Policy } from '../contracts.ts';

export interface EndpointView {
  key: string;
  /** Requests that this worker has at it now. */
  inflight: number;
}

export interface EndpointInput {
  session: string | undefined;
  /** Endpoints that may be used and have a free place. One at least. Only the ones decided on are read. */
  endpoints: readonly (EndpointView | undefined)[];
}

/** Chooses the endpoint with less in flight of two drawn at random, or a session's own. */
export const twoChoices: Policy<EndpointInput, number> = {
  name: 'two-choices',
  version: 1,
  decide(input: EndpointInput, _now: number, random: Random): Decision<number> {
    const count = input.endpoints.length;
    if (count === 1) return chosen(input, 0, 'only-endpoint', {});
    if (input.session !== undefined)
      return chosen(input, bySession(input, input.session), 'endpoint-by-session', {});
    const first = Math.floor(random.next() * count);
    const offset = 1 + Math.floor(random.next() * (count - 1));
    const second = (first + offset) % count;
    const [a, b] = [input.endpoints[first]!, input.endpoints[second]!];
    const figures = { drawn: `${first},${second}`, first: a.inflight, second: b.inflight };
    return chosen(input, a.inflight <= b.inflight ? first : second, 'less-in-flight-of-two', figures);
  },
};

function bySession({ endpoints }: EndpointInput, session: string): number {
  let best = 0;
  let bestScore = -1;
  endpoints.forEach((endpoint, at) => {
    const score = rendezvousScore(session, endpoint!.key, 1);
    if (score > bestScore) {
      best = at;
      bestScore = score;
    }
  });
  return best;
}

function chosen(
  { endpoints }: EndpointInput,
  choice: number,
  code: string,
  figures: Record<string, string | number>,
): Decision<number> {
  return {
    choice,
    reason: { code, figures: { endpoint: endpoints[choice]!.key, endpoints: endpoints.length, ...figures } },
  };
}

/** What of the input was read for a decision, enough to replay it: the two that were drawn; for a session every one. */
export function readOf(input: EndpointInput, decision: Decision<number>): unknown {
  const { endpoints, session } = input;
  const drawn = decision.reason.figures['drawn'];
  const places = typeof drawn === 'string' ? drawn.split(',').map(Number) : endpoints.map((_, at) => at);
  return {
    session,
    count: endpoints.length,
    read: places.map((at) => ({ at, key: endpoints[at]!.key, inflight: endpoints[at]!.inflight })),
  };
}

/** The input of a recorded decision, made whole again: places that were not read stay empty. */
export function restore(read: unknown): EndpointInput {
  const {
    session,
    count,
    read: places,
  } = read as {
    session?: string;
    count: number;
    read: { at: number; key: string; inflight: number }[];
  };
  const endpoints: (EndpointView | undefined)[] = new Array(count).fill(undefined);
  for (const { at, key, inflight } of places) endpoints[at] = { key, inflight };
  return { session, endpoints };
}
