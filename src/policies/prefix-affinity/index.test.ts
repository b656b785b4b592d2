import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { replayable } from '../register.ts';
import { hashBeginnings } from './blocks.ts';
import { Holders } from './holders.ts';
import { type PlacedView, type PrefixInput, prefixAffinity } from './index.ts';

const random = seededRandom(1);
const view = (at: number, load = 0): PlacedView => ({ at, key: `b|http://10.0.0.${at}`, load });
const decide = (input: Partial<PrefixInput>) =>
  prefixAffinity.decide(
    {
      blocks: 10,
      matched: 10,
      grown: false,
      usual: 100,
      holders: [],
      home: view(0),
      least: view(0),
      ...input,
    },
    0,
    random,
  );
const codeOf = (input: Partial<PrefixInput>) => {
  const { choice, reason } = decide(input);
  return `${reason.code} ${choice}`;
};

describe('the decision', () => {
  it('keeps a prompt where its beginning is, until that is much busier than the least busy', () => {
    const holders = (load: number) => ({ holders: [view(1, load)] });
    expect(codeOf({ ...holders(400), least: view(2, 0) })).toBe('prefix-kept 1');
    expect(codeOf({ ...holders(401), least: view(2, 0) })).toBe('prefix-yielded -1');
    expect(codeOf({ ...holders(1900), least: view(2, 1000) })).toBe('prefix-kept 1');
    expect(codeOf({ ...holders(1901), least: view(2, 1000) })).toBe('prefix-yielded -1');
  });

  it('goes to the first of those that have it, or to another that is a whole request less busy', () => {
    expect(codeOf({ holders: [view(1, 100), view(2, 0)] })).toBe('prefix-kept 1');
    expect(codeOf({ holders: [view(1, 101), view(2, 0)] })).toBe('prefix-kept 2');
  });

  it('places what nobody has half of where it belongs, unless that is busier than another by a request', () => {
    expect(codeOf({ matched: 0, home: view(3, 100) })).toBe('prefix-placed 3');
    expect(codeOf({ matched: 0, home: view(3, 101) })).toBe('prefix-not-placed -1');
    expect(codeOf({ matched: 4, holders: [view(1)], home: view(3) })).toBe('prefix-placed 3');
    expect(codeOf({ matched: 5, holders: [view(1)], home: view(3) })).toBe('prefix-kept 1');
    expect(codeOf({ matched: 1, grown: true, holders: [view(1)], home: view(3) })).toBe('prefix-kept 1');
  });

  it('replays to the same, from JSON', () => {
    const load = fc.double({ min: 0, max: 1e6, noNaN: true });
    const views = fc.record({ at: fc.nat(9), key: fc.string(), load });
    const inputs = fc.record({
      blocks: fc.integer({ min: 1, max: 80 }),
      matched: fc.nat(80),
      grown: fc.boolean(),
      usual: load,
      holders: fc.array(views, { maxLength: 4 }),
      home: views,
      least: views,
    });
    fc.assert(
      fc.property(inputs, (input) => {
        const decision = prefixAffinity.decide(input, 0, random);
        const recorded: unknown = JSON.parse(JSON.stringify(input));
        expect(replayable.get('prefix-affinity')!.replay(recorded, random)).toEqual(decision);
        if (decision.choice >= 0) {
          expect([...input.holders, input.home].map(({ at }) => at)).toContain(decision.choice);
        }
      }),
    );
  });
});

describe('the beginnings of a prompt', () => {
  const hashes = (text: string, seed = 1) => {
    const bytes = Buffer.from(`xx${text}`);
    return [...hashBeginnings(bytes, 2, bytes.length, seed)];
  };

  it('are the same as far as two prompts are the same, and different from there on', () => {
    const text = fc.string({ minLength: 0, maxLength: 40_000, unit: fc.constantFrom('a', 'b', 'c') });
    fc.assert(
      fc.property(text, text, text, (common, one, other) => {
        const a = hashes(common + one);
        const b = hashes(common + other);
        let same = 0;
        while ((common + one)[same] !== undefined && (common + one)[same] === (common + other)[same]) same++;
        const equal = a.findIndex((hash, at) => hash !== b[at]);
        const blocks = equal < 0 ? Math.min(a.length, b.length) : equal;
        // At least the whole blocks of what is the same; a block more would be a collision.
        expect(blocks).toBe(Math.min(a.length, b.length, hashes((common + one).slice(0, same)).length));
      }),
      { numRuns: 60 },
    );
  });

  it('are none of a short prompt, at most 80, and nothing that two tenants share', () => {
    expect(hashes('x'.repeat(511))).toEqual([]);
    expect(hashes('x'.repeat(512))).toHaveLength(1);
    expect(hashes('x'.repeat(1_000_000))).toHaveLength(80);
    const [one, two] = [hashes('x'.repeat(10_000), 1), hashes('x'.repeat(10_000), 2)];
    expect(one.filter((hash) => two.includes(hash))).toEqual([]);
    expect(new Set(one).size).toBe(one.length);
  });
});

describe('who has a beginning', () => {
  it('is nobody at first, then whoever was told last, four at most', () => {
    const holders = new Holders();
    expect(holders.ownersOf(7, [1, 2])).toEqual([]);
    for (const owner of [11, 12, 11, 13, 14, 15]) holders.remember(new Uint32Array([7]), owner);
    expect(holders.ownersOf(7, []).sort()).toEqual([11, 13, 14, 15]);
    expect(holders.ownersOf(8, [])).toEqual([]);
  });

  it('had all of a prompt, as long as none went on after it', () => {
    const holders = new Holders();
    holders.remember(new Uint32Array([7, 8]), 11);
    expect([7, 8].map((beginning) => holders.isWhole(beginning))).toEqual([false, true]);
    holders.remember(new Uint32Array([7, 8, 9]), 12);
    holders.remember(new Uint32Array([7, 8]), 11);
    expect([7, 8, 9].map((beginning) => holders.isWhole(beginning))).toEqual([false, false, true]);
  });

  it('is forgotten for beginnings that came later, never the other way round, and stays bounded', () => {
    const holders = new Holders();
    const many = Array.from({ length: 300_000 }, (_, at) => (at * 2_654_435_761) >>> 0);
    for (const beginning of many) holders.remember(new Uint32Array([beginning]), 5);
    const known = many.map((beginning) => holders.ownersOf(beginning, []).length);
    expect(known.slice(-16_384).reduce((sum, found) => sum + found, 0)).toBeGreaterThan(16_000);
    expect(known.reduce((sum, found) => sum + found, 0)).toBeLessThanOrEqual(65_536);
  });
});
