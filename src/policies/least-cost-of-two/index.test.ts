import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayedRandom, seededRandom } from '../../kernel/random.ts';
import { replayable } from '../register.ts';
import { type ChoiceInput, type EndpointView, leastCostOfTwo, readOf, restore } from './index.ts';

const view = fc.record(
  {
    tokens: fc.nat(100_000),
    requests: fc.nat(300),
    latencyMs: fc.double({ min: 0, max: 60_000, noNaN: true }),
    ageMs: fc.double({ min: 0, max: 100_000, noNaN: true }),
    others: fc.nat(50),
  },
  { requiredKeys: ['tokens', 'requests'] },
);
const endpoints = fc
  .array(view, { minLength: 1, maxLength: 12 })
  .map((all) => all.map((each, at): EndpointView => ({ key: `b|http://10.0.0.${at}:8000`, ...each })));
const several = endpoints.filter(({ length }) => length > 1);
const session = fc.string({ maxLength: 40 });
const size = fc.integer({ min: 1, max: 5000 });

function inputOf(of: readonly EndpointView[], key?: string, tokens = 100, onRead?: (at: number) => void) {
  const input: ChoiceInput = {
    session: key,
    tokens,
    count: of.length,
    keyOf: (at) => of[at]!.key,
    read: (at) => {
      onRead?.(at);
      return of[at]!;
    },
  };
  return input;
}

/** Decides as the path does: what is drawn is kept, and so is which endpoint is read. */
function decide(of: readonly EndpointView[], key: string | undefined, seed: number, tokens = 100) {
  const draws: number[] = [];
  const random = seededRandom(seed);
  const read = new Set<number>();
  const input = inputOf(of, key, tokens, (at) => read.add(at));
  const kept = { next: () => draws[draws.push(random.next()) - 1]! };
  const decision = leastCostOfTwo.decide(input, 0, kept);
  return { input: inputOf(of, key, tokens), decision, draws, read: [...read] };
}

/** Chooses between two, whichever is drawn first. */
function between(a: Partial<EndpointView>, b: Partial<EndpointView>, tokens = 100): Set<string> {
  const of = [
    { key: 'a', tokens: 0, requests: 0, ...a },
    { key: 'b', tokens: 0, requests: 0, ...b },
  ];
  return new Set(
    Array.from({ length: 40 }, (_, seed) => of[decide(of, undefined, seed, tokens).decision.choice]!.key),
  );
}

describe('without a session', () => {
  it('draws two, reads no other, and takes one of them', () => {
    fc.assert(
      fc.property(several, size, fc.nat(), (of, tokens, seed) => {
        const { decision, draws, read } = decide(of, undefined, seed, tokens);
        const drawn = String(decision.reason.figures['drawn']).split(',').map(Number);
        expect(new Set(drawn).size).toBe(2);
        expect(drawn).toContain(decision.choice);
        expect(read.sort()).toEqual([...drawn].sort());
        expect(draws).toHaveLength(2);
      }),
      { numRuns: 500 },
    );
  });

  it('draws every pair equally often', () => {
    const random = seededRandom(7);
    const of = Array.from({ length: 4 }, (_, at) => ({ key: `${at}`, tokens: 0, requests: 0 }));
    const counts = new Map<string, number>();
    for (let i = 0; i < 12_000; i++) {
      const { reason } = leastCostOfTwo.decide(inputOf(of), 0, random);
      const drawn = String(reason.figures['drawn']);
      counts.set(drawn, (counts.get(drawn) ?? 0) + 1);
    }
    expect(counts.size).toBe(12);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('is the same whichever of the two is drawn first, save for equals', () => {
    fc.assert(
      fc.property(view, view, size, (a, b, tokens) => {
        const chosen = between(a, b, tokens);
        if (chosen.size > 1) expect(between(b, a, tokens).size).toBe(2);
        else expect(between(b, a, tokens)).toEqual(new Set([chosen.has('a') ? 'b' : 'a']));
      }),
    );
  });

  it('keeps many endpoints nearly even, where one choice would not', () => {
    const random = seededRandom(3);
    const of = Array.from({ length: 50 }, (_, at) => ({ key: `${at}`, tokens: 0, requests: 0 }));
    for (let i = 0; i < 5_000; i++) {
      of[leastCostOfTwo.decide(inputOf(of, undefined, 10), 0, random).choice]!.tokens += 10;
    }
    // On average 1000; one random choice leaves the fullest near 1250.
    expect(Math.max(...of.map(({ tokens }) => tokens))).toBeLessThan(1060);
  });
});

describe('the cost', () => {
  it('counts tokens as well as requests', () => {
    expect(between({ tokens: 9000, requests: 2 }, { tokens: 500, requests: 10 })).toEqual(new Set(['b']));
    expect(between({ tokens: 2000, requests: 2 }, { tokens: 1800, requests: 10 })).toEqual(new Set(['a']));
  });

  it('is that of the slower one times how much slower it is', () => {
    const slow = { latencyMs: 1000, ageMs: 0 };
    const quick = { latencyMs: 40, ageMs: 0 };
    expect(between(slow, quick)).toEqual(new Set(['b']));
    expect(between({ ...slow, tokens: 0 }, { ...quick, tokens: 1500, requests: 15 })).toEqual(new Set(['b']));
    expect(between({ ...slow, tokens: 0 }, { ...quick, tokens: 3000, requests: 30 })).toEqual(new Set(['a']));
  });

  it('takes small differences for noise', () => {
    expect(between({ latencyMs: 1 }, { latencyMs: 3 }).size).toBe(2);
    expect(between({ latencyMs: 400 }, { latencyMs: 780 }).size).toBe(2);
    expect(between({ latencyMs: 780 }, { latencyMs: 400, tokens: 1 })).toEqual(new Set(['a']));
  });

  it('believes less and less in what was measured long ago, so that a slow one is tried again', () => {
    const quick = { latencyMs: 40, ageMs: 0 };
    expect(between({ latencyMs: 1000, ageMs: 20_000 }, quick)).toEqual(new Set(['b']));
    expect(between({ latencyMs: 1000, ageMs: 45_000 }, quick).size).toBe(2);
    // That the quick one has not been heard of for long does not make it quicker.
    expect(between({ latencyMs: 1000, ageMs: 0 }, { ...quick, ageMs: 60_000 })).toEqual(new Set(['b']));
  });

  it('presumes nothing of the speed of one that nobody knows', () => {
    const quick = { latencyMs: 40, ageMs: 0, tokens: 200, requests: 2 };
    expect(between({ tokens: 300, requests: 3 }, quick)).toEqual(new Set(['b']));
    expect(between({ tokens: 100, requests: 1 }, quick)).toEqual(new Set(['a']));
  });

  it("counts others' requests where both engines tell of them, and only then", () => {
    const busy = { others: 30 };
    expect(between(busy, { others: 0, tokens: 900, requests: 9 })).toEqual(new Set(['b']));
    expect(between({ others: 0 }, { others: 0 }).size).toBe(2);
    expect(between(busy, {}).size).toBe(2);
    expect(between(busy, { tokens: 1 })).toEqual(new Set(['a']));
  });
});

describe('a session', () => {
  it('has its own endpoint, however busy, and only its own sessions move when one goes', () => {
    fc.assert(
      fc.property(several, fc.nat(), session, fc.nat(), (of, at, key, seed) => {
        const gone = of[at % of.length]!;
        const { decision, draws, read } = decide(of, key, seed);
        const own = of[decision.choice]!;
        expect([draws, read]).toEqual([[], []]);
        const emptied = of.map((endpoint) => ({ ...endpoint, tokens: 100_000 - endpoint.tokens }));
        expect(decide(emptied, key, seed + 1).decision.choice).toBe(decision.choice);
        const rest = of.filter((endpoint) => endpoint !== gone);
        const after = rest[decide(rest, key, seed).decision.choice]!;
        if (own !== gone) expect(after).toBe(own);
      }),
      { numRuns: 500 },
    );
  });

  it('spreads evenly with others', () => {
    const of = Array.from({ length: 5 }, (_, at) => ({
      key: `b|http://10.0.0.${at}`,
      tokens: 0,
      requests: 0,
    }));
    const counts = of.map(() => 0);
    for (let i = 0; i < 10_000; i++) counts[decide(of, `web/${i}`, 1).decision.choice]!++;
    for (const count of counts) expect(Math.abs(count - 2000)).toBeLessThan(200);
  });
});

describe('a record', () => {
  it('holds the two that were drawn, or the keys of all', () => {
    fc.assert(
      fc.property(endpoints, fc.option(session, { nil: undefined }), fc.nat(), (of, key, seed) => {
        const { input, decision } = decide(of, key, seed);
        const recorded = readOf(input, decision) as { read?: { at: number }[]; keys?: string[] };
        const drawn = decision.reason.figures['drawn'];
        if (typeof drawn === 'string') expect(recorded.read!.map(({ at }) => at).join()).toBe(drawn);
        else expect(recorded.keys).toEqual(of.map((endpoint) => endpoint.key));
      }),
    );
  });

  it('replays to the same decision, from JSON and the draws alone', () => {
    fc.assert(
      fc.property(
        endpoints,
        fc.option(session, { nil: undefined }),
        size,
        fc.nat(),
        (of, key, tokens, seed) => {
          const { input, decision, draws } = decide(of, key, seed, tokens);
          const recorded: unknown = JSON.parse(JSON.stringify(readOf(input, decision)));
          expect(restore(recorded).session).toBe(key);
          const again = replayable.get(leastCostOfTwo.name)!.replay(recorded, replayedRandom(draws));
          expect(JSON.parse(JSON.stringify(again))).toEqual(JSON.parse(JSON.stringify(decision)));
          expect(again).toEqual(decision);
        },
      ),
      { numRuns: 500 },
    );
  });
});
