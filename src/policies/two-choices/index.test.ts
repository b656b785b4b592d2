import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayedRandom, seededRandom } from '../../kernel/random.ts';
import { replayable } from '../register.ts';
import { type EndpointInput, type EndpointView, readOf, restore, twoChoices } from './index.ts';

const endpoints = fc
  .array(fc.nat(300), { minLength: 1, maxLength: 12 })
  .map((all) => all.map((inflight, at) => ({ key: `b|http://10.0.0.${at}:8000`, inflight })));
const several = endpoints.filter(({ length }) => length > 1);
const session = fc.string({ maxLength: 40 });

/** Decides as the path does: what is drawn is kept, and so is what is read of which endpoint. */
function decide(of: readonly EndpointView[], key: string | undefined, seed: number) {
  const draws: number[] = [];
  const random = seededRandom(seed);
  const loadsRead = new Set<number>();
  const watched = of.map((endpoint, at) => ({
    key: endpoint.key,
    get inflight() {
      loadsRead.add(at);
      return endpoint.inflight;
    },
  }));
  const input: EndpointInput = { session: key, endpoints: watched };
  const kept = { next: () => draws[draws.push(random.next()) - 1]! };
  const decision = twoChoices.decide(input, 0, kept);
  return { input, decision, draws, loadsRead: [...loadsRead] };
}

describe('without a session', () => {
  it('never picks the fuller one of the two drawn, and reads the load of no other', () => {
    fc.assert(
      fc.property(several, fc.nat(), (of, seed) => {
        const { decision, draws, loadsRead } = decide(of, undefined, seed);
        const drawn = String(decision.reason.figures['drawn']).split(',').map(Number);
        expect(new Set(drawn).size).toBe(2);
        expect(drawn).toContain(decision.choice);
        expect(loadsRead.sort()).toEqual([...drawn].sort());
        for (const at of drawn) expect(of[decision.choice]!.inflight).toBeLessThanOrEqual(of[at]!.inflight);
        expect(draws).toHaveLength(2);
      }),
      { numRuns: 500 },
    );
  });

  it('draws every pair equally often', () => {
    const random = seededRandom(7);
    const of = Array.from({ length: 4 }, (_, at) => ({ key: `${at}`, inflight: 0 }));
    const counts = new Map<string, number>();
    for (let i = 0; i < 12_000; i++) {
      const { reason } = twoChoices.decide({ session: undefined, endpoints: of }, 0, random);
      const drawn = String(reason.figures['drawn']);
      counts.set(drawn, (counts.get(drawn) ?? 0) + 1);
    }
    expect(counts.size).toBe(12);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('keeps many endpoints nearly even, where one choice would not', () => {
    const random = seededRandom(3);
    const of = Array.from({ length: 50 }, (_, at) => ({ key: `${at}`, inflight: 0 }));
    for (let i = 0; i < 5_000; i++) {
      of[twoChoices.decide({ session: undefined, endpoints: of }, 0, random).choice]!.inflight++;
    }
    // On average 100; one random choice leaves the fullest near 125.
    expect(Math.max(...of.map(({ inflight }) => inflight))).toBeLessThan(106);
  });
});

describe('a session', () => {
  it('has its own endpoint, however full, and only its own sessions move when one goes', () => {
    fc.assert(
      fc.property(several, fc.nat(), session, fc.nat(), (of, at, key, seed) => {
        const gone = of[at % of.length]!;
        const { decision, draws } = decide(of, key, seed);
        const own = of[decision.choice]!;
        expect(draws).toEqual([]);
        const emptied = of.map((endpoint) => ({ ...endpoint, inflight: 300 - endpoint.inflight }));
        expect(decide(emptied, key, seed + 1).decision.choice).toBe(decision.choice);
        const rest = of.filter((endpoint) => endpoint !== gone);
        const after = rest[decide(rest, key, seed).decision.choice]!;
        if (own !== gone) expect(after).toBe(own);
      }),
      { numRuns: 500 },
    );
  });

  it('spreads evenly with others', () => {
    const of = Array.from({ length: 5 }, (_, at) => ({ key: `b|http://10.0.0.${at}`, inflight: 0 }));
    const counts = of.map(() => 0);
    for (let i = 0; i < 10_000; i++) counts[decide(of, `web/${i}`, 1).decision.choice]!++;
    for (const count of counts) expect(Math.abs(count - 2000)).toBeLessThan(200);
  });
});

describe('a record', () => {
  it('holds what was read, and no endpoint that was not', () => {
    fc.assert(
      fc.property(endpoints, fc.option(session, { nil: undefined }), fc.nat(), (of, key, seed) => {
        const { input, decision } = decide(of, key, seed);
        const read = readOf(input, decision) as { read: { at: number }[] };
        const places = read.read.map(({ at }) => at).sort((a, b) => a - b);
        const drawn = decision.reason.figures['drawn'];
        if (typeof drawn === 'string')
          expect(places).toEqual(
            drawn
              .split(',')
              .map(Number)
              .sort((a, b) => a - b),
          );
        else expect(places).toEqual(of.map((_, at) => at));
        restore(read).endpoints.forEach((endpoint, at) => {
          expect(endpoint).toEqual(places.includes(at) ? of[at] : undefined);
        });
      }),
    );
  });

  it('replays to the same decision, from JSON and the draws alone', () => {
    fc.assert(
      fc.property(endpoints, fc.option(session, { nil: undefined }), fc.nat(), (of, key, seed) => {
        const { input, decision, draws } = decide(of, key, seed);
        const recorded: unknown = JSON.parse(JSON.stringify(readOf(input, decision)));
        expect(restore(recorded).session).toBe(key);
        expect(replayable.get('two-choices')!.replay(recorded, replayedRandom(draws))).toEqual(decision);
      }),
    );
  });
});
