import { describe, expect, it } from 'vitest';
import { chatAnswer, VirtualGateway } from './virtual-gateway.ts';

/** `affinity: session`: requests of one session go to one target and one endpoint, while these are well. */

const ORIGINS = [1, 2, 3, 4].map((host) => `http://10.0.0.${host}:8000`);
const SESSIONS = Array.from({ length: 60 }, (_, i) => `conversation-${i}`);

function config(affinity: string, left: readonly string[] = ORIGINS): object {
  const backend = (from: number, to: number) => ({
    engine: 'vllm',
    model: 'm',
    endpoints: ORIGINS.slice(from, to)
      .filter((origin) => left.includes(origin))
      .map((origin) => `${origin}/v1`),
  });
  const targets = [
    { backend: 'b1', weight: 2 },
    { backend: 'b2', weight: 1 },
  ];
  return {
    backends: { b1: backend(0, 2), b2: backend(2, 4) },
    routes: { chat: { targets, affinity } },
  };
}

function world(affinity = 'session', seed = 1) {
  const gateway = new VirtualGateway(config(affinity), seed);
  for (const origin of ORIGINS) gateway.engines.set(origin, chatAnswer('x', 1));
  /** Where a request with these members and headers is answered. */
  const placeOf = async (body: object, headers: Record<string, string> = {}) => {
    const caller = gateway.chat(body, headers);
    await gateway.time.advance(5);
    expect(caller.status).toBe(200);
    return gateway.records.at(-1)!.endpoint!;
  };
  const placesOf = async (sessions: readonly string[]) => {
    const places = new Map<string, string>();
    for (const session of sessions) places.set(session, await placeOf({}, { 'x-armature-session': session }));
    return places;
  };
  return { gateway, placeOf, placesOf };
}

describe('a session', () => {
  it('stays where it is, in every worker, and sessions are spread over all endpoints', async () => {
    const { placesOf } = world();
    const places = await placesOf(SESSIONS);
    expect(new Set(places.values()).size).toBe(4);
    for (let i = 0; i < 3; i++) expect(await placesOf(SESSIONS)).toEqual(places);
    expect(await world('session', 99).placesOf(SESSIONS)).toEqual(places);
  });

  it('moves only when its own endpoint goes, and comes back with it', async () => {
    const { gateway, placesOf } = world();
    const before = await placesOf(SESSIONS);
    const gone = ORIGINS[1]!;
    gateway.load(
      config(
        'session',
        ORIGINS.filter((origin) => origin !== gone),
      ),
    );
    const meanwhile = await placesOf(SESSIONS);
    for (const [session, place] of before) {
      if (place.startsWith(gone)) expect(meanwhile.get(session)).not.toBe(place);
      else expect(meanwhile.get(session)).toBe(place);
    }
    gateway.load(config('session'));
    expect(await placesOf(SESSIONS)).toEqual(before);
  });

  it('is named by the header first, then by prompt_cache_key, then by user', async () => {
    const { placeOf, placesOf } = world();
    const places = await placesOf(SESSIONS);
    for (const [session, place] of [...places].slice(0, 20)) {
      const other = 'somebody else';
      const header = { 'x-armature-session': session };
      expect(await placeOf({ prompt_cache_key: other, user: other }, header)).toBe(place);
      expect(await placeOf({ prompt_cache_key: session, user: other })).toBe(place);
      expect(await placeOf({ user: session })).toBe(place);
    }
  });

  it('is nothing to a route that does not ask for it', async () => {
    const { placeOf } = world('none');
    const seen = new Set<string>();
    for (let i = 0; i < 60; i++) seen.add(await placeOf({ user: 'me' }, { 'x-armature-session': 'mine' }));
    expect(seen.size).toBe(4);
  });
});
