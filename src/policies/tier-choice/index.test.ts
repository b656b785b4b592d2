import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { priorities } from '../../kernel/priorities.ts';
import { seededRandom } from '../../kernel/random.ts';
import { replayable } from '../register.ts';
import { type TierInput, TierLoads, type TierRule, type TierView, tierChoice } from './index.ts';

const NAMES = ['edge', 'mid', 'large'];
const random = seededRandom(1);
const decide = (input: TierInput) => tierChoice.decide(input, 0, random);

const rule = (tier: string, when: TierRule['when'] = {}, waitMax = 0): TierRule => ({ tier, when, waitMax });
const view = (tier: string, more: Partial<TierView> = {}): TierView => ({
  tier,
  usable: true,
  room: true,
  waitMs: undefined,
  load: 0,
  price: undefined,
  fits: true,
  ...more,
});
const FULL = { room: false, load: 1, fits: false };
const UNWELL = { usable: false, room: false, load: 1, fits: false };

function input(rules: TierRule[], more: Partial<TierInput> = {}): TierInput {
  return {
    priority: 'standard',
    promptTokens: 100,
    asked: undefined,
    rules,
    loaded: rules.map(() => true),
    tiers: NAMES.map((tier) => view(tier)),
    session: undefined,
    left: [],
    ...more,
  };
}

/** The tiers with some of them otherwise. */
const tiers = (others: Record<string, Partial<TierView>>) => NAMES.map((tier) => view(tier, others[tier]));

describe('the first rule that holds decides', () => {
  it.each<[string, TierRule['when'], Partial<TierInput>, boolean]>([
    ['a priority', { priority: ['batch'] }, { priority: 'batch' }, true],
    ['another priority', { priority: ['batch'] }, { priority: 'critical' }, false],
    ['a short prompt', { promptTokensMax: 100 }, {}, true],
    ['one too long', { promptTokensMax: 99 }, {}, false],
    ['a long prompt', { promptTokensMin: 100 }, {}, true],
    ['one too short', { promptTokensMin: 101 }, {}, false],
    ['a load', { load: { edge: 0.8 } }, {}, true],
    ['a load that is not there', { load: { edge: 0.8 } }, { loaded: [false, true] }, false],
    ['two of three', { priority: ['batch'], promptTokensMax: 100 }, {}, false],
  ])('%s', (_, when, more, holds) => {
    const { choice, reason } = decide(input([rule('large', when), rule('mid')], more));
    expect(choice).toEqual({
      tier: holds ? 'large' : 'mid',
      home: holds ? 'large' : 'mid',
      rule: holds ? 0 : 1,
    });
    expect(reason.code).toBe('tier-by-rule');
  });

  it('gives what is asked for, and nothing where that is no tier of the route', () => {
    const rules = [rule('asked', { priority: ['interactive'] }), rule('edge')];
    const at = (more: Partial<TierInput>) => decide(input(rules, more)).choice.tier;
    expect(at({ priority: 'interactive', asked: 'large' })).toBe('large');
    expect(at({ priority: 'batch', asked: 'large' })).toBe('edge');
    expect(at({ priority: 'interactive', asked: 'huge' })).toBe('edge');
    expect(at({ priority: 'interactive' })).toBe('edge');
  });

  it('gives the cheapest that fits; one without a price comes last', () => {
    const at = (others: Record<string, Partial<TierView>>) =>
      decide(input([rule('cheapest')], { tiers: tiers(others) })).choice.tier;
    expect(at({ edge: { price: 3 }, mid: { price: 2 }, large: {} })).toBe('mid');
    expect(at({ edge: { price: 3 }, mid: { price: 2, fits: false }, large: {} })).toBe('edge');
    expect(at({ edge: FULL, mid: FULL, large: {} })).toBe('large');
  });

  it('is the tier of the first target where none holds', () => {
    const { choice, reason } = decide(input([rule('large', { priority: ['batch'] })]));
    expect(choice).toEqual({ tier: 'edge', home: 'edge', rule: undefined });
    expect(reason.code).toBe('tier-by-order');
  });
});

describe('a tier that cannot take it', () => {
  it.each([
    ['full', FULL],
    ['unwell', UNWELL],
  ])('as it is %s is passed over: next comes what another rule gives, then the targets', (passed, state) => {
    const rules = [rule('mid', { promptTokensMax: 500 }), rule('large')];
    const { choice, reason } = decide(input(rules, { tiers: tiers({ mid: state }) }));
    expect(choice).toEqual({ tier: 'large', home: 'mid', rule: 0, passed });
    expect(reason).toMatchObject({
      code: 'tier-stands-in',
      figures: { tier: 'large', wanted: 'mid', passed },
    });
    expect(decide(input(rules, { tiers: tiers({ mid: state, large: state }) })).choice.tier).toBe('edge');
  });

  it('is waited for where all are full', () => {
    const full = tiers({ edge: FULL, mid: FULL, large: FULL });
    expect(decide(input([rule('mid')], { tiers: full })).choice.tier).toBe('mid');
    expect(decide(input([rule('mid')], { tiers: full, left: ['mid'] })).choice.tier).toBe('edge');
  });

  it('is waited for as long as its rule says', () => {
    const at = (waitMs: number) =>
      decide(input([rule('mid', {}, 500)], { tiers: tiers({ mid: { ...FULL, waitMs } }) })).choice.tier;
    expect(at(500)).toBe('mid');
    expect(at(501)).toBe('edge');
  });
});

describe('a session', () => {
  const session = (home: string, at = home) => ({ home, at });

  it('stays where any rule allows it, and goes where it asks to', () => {
    const rules = [rule('asked'), rule('edge', { promptTokensMax: 50 }), rule('large')];
    const at = (more: Partial<TierInput>) => decide(input(rules, more));
    expect(at({ session: session('large'), promptTokens: 10 }).choice.tier).toBe('large');
    expect(at({ session: session('large'), promptTokens: 10 }).reason.code).toBe('tier-kept');
    expect(at({ session: session('large'), asked: 'edge' }).choice.tier).toBe('edge');
    expect(at({ session: session('edge'), asked: 'large' }).choice.tier).toBe('large');
  });

  it('grows a quarter beyond the lengths of its rule before it moves', () => {
    const rules = [
      rule('edge', { promptTokensMax: 400 }),
      rule('mid', { promptTokensMin: 4000 }),
      rule('large'),
    ];
    const at = (home: string, promptTokens: number) =>
      decide(input(rules, { session: session(home), promptTokens })).choice.tier;
    expect(at('edge', 500)).toBe('edge');
    expect(at('edge', 501)).toBe('large');
    expect(at('mid', 3000)).toBe('mid');
    expect(at('mid', 2999)).toBe('large');
  });

  it('leaves a tier that was chosen for its load once that is over', () => {
    const rules = [rule('edge', { load: { large: 0.8 } }), rule('large')];
    const at = (loaded: boolean) =>
      decide(input(rules, { session: session('edge'), loaded: [loaded, true] })).choice.tier;
    expect(at(true)).toBe('edge');
    expect(at(false)).toBe('large');
    // Who is in the busy tier already is not sent away from it.
    expect(decide(input(rules, { session: session('large') })).choice.tier).toBe('large');
  });

  it('is back in its own tier once that is well, and not so busy as to be full again at once', () => {
    const at = (load: number) =>
      decide(input([rule('mid')], { session: session('mid', 'large'), tiers: tiers({ mid: { load } }) }));
    expect(at(0.75).choice).toEqual({ tier: 'large', home: 'mid', rule: 0, passed: 'busy' });
    expect(at(0.74).choice.tier).toBe('mid');
  });
});

const anyRule = fc.record({
  tier: fc.constantFrom(...NAMES, 'asked', 'cheapest'),
  when: fc.record(
    {
      priority: fc.subarray([...priorities], { minLength: 1 }),
      promptTokensMin: fc.nat(1000),
      promptTokensMax: fc.nat(1000),
    },
    { requiredKeys: [] },
  ),
  waitMax: fc.constantFrom(0, 1000),
});
const anyView = (tier: string) =>
  fc
    .record({
      usable: fc.boolean(),
      room: fc.boolean(),
      waitMs: fc.option(fc.nat(2000), { nil: undefined }),
      load: fc.double({ min: 0, max: 2, noNaN: true }),
      price: fc.option(fc.double({ min: 0, max: 9, noNaN: true }), { nil: undefined }),
      fits: fc.boolean(),
    })
    .map((each) => ({ tier, ...each, room: each.room && each.usable, fits: each.fits && each.usable }));
const anyInput: fc.Arbitrary<TierInput> = fc
  .record({
    priority: fc.constantFrom(...priorities),
    promptTokens: fc.nat(1500),
    asked: fc.option(fc.constantFrom(...NAMES, 'huge'), { nil: undefined }),
    rules: fc.array(anyRule, { minLength: 1, maxLength: 5 }),
    tiers: fc.tuple(...NAMES.map(anyView)),
    session: fc.option(
      fc.record({ home: fc.constantFrom(...NAMES, 'gone'), at: fc.constantFrom(...NAMES, 'gone') }),
      { nil: undefined },
    ),
    left: fc.subarray(NAMES),
  })
  .map((each) => ({ ...each, loaded: each.rules.map((_, at) => at % 2 === 0) }));

describe('whatever the rules are', () => {
  it('a request goes nowhere only where no tier that it was not turned away from can be used', () => {
    fc.assert(
      fc.property(anyInput, (asked) => {
        const { tier } = decide(asked).choice;
        const usable = asked.tiers.filter((each) => each.usable && !asked.left.includes(each.tier));
        if (tier === undefined) expect(usable).toEqual([]);
        else expect(usable.map((each) => each.tier)).toContain(tier);
      }),
      { numRuns: 1000 },
    );
  });

  it('nobody waits while another tier has room, beyond what a rule lets him', () => {
    fc.assert(
      fc.property(anyInput, (asked) => {
        const { tier } = decide(asked).choice;
        const found = asked.tiers.find((each) => each.tier === tier);
        if (!found || found.room) return;
        const longest = Math.max(...asked.rules.map(({ waitMax }) => waitMax));
        const others = asked.tiers.filter((each) => each.room && !asked.left.includes(each.tier));
        if (others.length > 0) expect(found.waitMs).toBeLessThanOrEqual(longest);
      }),
      { numRuns: 1000 },
    );
  });

  it('the same request of the same session goes to the same tier again', () => {
    fc.assert(
      fc.property(anyInput, (asked) => {
        const first = decide(asked).choice;
        if (first.tier === undefined) return;
        const again = decide({ ...asked, session: { home: first.home, at: first.tier } }).choice;
        expect(again.home).toBe(first.home);
        expect(again.tier).toBe(first.tier);
      }),
      { numRuns: 1000 },
    );
  });

  it('a recorded decision, replayed, is the same', () => {
    fc.assert(
      fc.property(anyInput, (asked) => {
        const recorded: unknown = JSON.parse(JSON.stringify(asked));
        const replayed = replayable.get('tier-choice')!.replay(recorded, random);
        expect(replayed).toEqual(decide(asked));
      }),
    );
  });
});

describe('a rule for load', () => {
  const RULES = [rule('edge', { load: { large: 0.8 } }), rule('large')];
  const at = (loads: TierLoads, load: number, now: number) => loads.read(tiers({ large: { load } }), now)[0]!;

  it('holds from its load on, until that was below three quarters of it for two seconds', () => {
    const loads = new TierLoads(RULES);
    expect(at(loads, 0.79, 0)).toBe(false);
    expect(at(loads, 0.8, 10)).toBe(true);
    expect(at(loads, 0.61, 3_000)).toBe(true);
    expect(at(loads, 0.59, 4_000)).toBe(true);
    expect(at(loads, 0.61, 5_500)).toBe(true);
    expect(at(loads, 0.59, 6_000)).toBe(true);
    expect(at(loads, 0.59, 7_999)).toBe(true);
    expect(at(loads, 0.59, 8_000)).toBe(false);
    expect(at(loads, 0.79, 8_001)).toBe(false);
  });

  it('is judged anew after ten seconds without a request', () => {
    const loads = new TierLoads(RULES);
    expect(at(loads, 0.9, 0)).toBe(true);
    expect(at(loads, 0.7, 10_000)).toBe(false);
  });

  it('wants every load that it names', () => {
    const loads = new TierLoads([rule('edge', { load: { large: 0.5, mid: 0.5 } })]);
    expect(loads.read(tiers({ large: { load: 1 }, mid: { load: 0.4 } }), 0)).toEqual([false]);
    expect(loads.read(tiers({ large: { load: 1 }, mid: { load: 0.6 } }), 1)).toEqual([true]);
  });

  it('does not end twice within two seconds, whatever the load does', () => {
    const steps = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 900 }), fc.double({ min: 0, max: 1.5, noNaN: true })),
    );
    fc.assert(
      fc.property(steps, (moments) => {
        const loads = new TierLoads(RULES);
        let now = 0;
        let held = false;
        let beganAt = 0;
        for (const [gapMs, load] of moments) {
          now += gapMs;
          const holds = at(loads, load, now);
          if (holds && !held) beganAt = now;
          if (held && !holds) expect(now - beganAt).toBeGreaterThanOrEqual(2_000);
          held = holds;
        }
      }),
      { numRuns: 300 },
    );
  });
});
