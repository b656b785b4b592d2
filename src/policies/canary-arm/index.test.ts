import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayedRandom } from '../../kernel/random.ts';
import { replayable } from '../register.ts';
import { type ArmInput, armOf, canaryArm, placeOf, sessionHash } from './index.ts';

const share = fc.double({ min: 0, max: 1, noNaN: true });
const session = fc.string({ maxLength: 40 });
const release = fc.string({ maxLength: 30 });
const nothing = replayedRandom([]);

const input = (more: Partial<ArmInput>): ArmInput => ({
  release: 'rel_1',
  session: 's',
  share: 0.5,
  canary: 'next',
  ...more,
});

describe('an arm', () => {
  it('is sticky, and the canary only grows with the share; so does baseline up to a half (traps 20, 21)', () => {
    fc.assert(
      fc.property(release, session, share, share, (id, key, one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)];
        expect(armOf(id, key, less)).toBe(armOf(id, key, less));
        if (armOf(id, key, less) === 'canary') expect(armOf(id, key, more)).toBe('canary');
        if (armOf(id, key, less) === 'baseline' && more <= 0.5) expect(armOf(id, key, more)).toBe('baseline');
      }),
      { numRuns: 2_000 },
    );
  });

  it('is nobody’s at a share of 0, and the canary’s alone at 1', () => {
    fc.assert(
      fc.property(session, (key) => {
        expect(armOf('r', key, 0)).toBe('stable');
        expect(armOf('r', key, 1)).toBe('canary');
      }),
    );
  });

  it.each([0.01, 0.05, 0.25, 0.5, 0.9])('has its share of many sessions (%d)', (of) => {
    for (const kind of ['open/conversation-', 'req_0193', '']) {
      const count = 40_000;
      const seen = { canary: 0, baseline: 0, stable: 0 };
      for (let i = 0; i < count; i++) seen[armOf('rel_7', `${kind}${i}`, of)]++;
      const near = (part: number) => 5 * Math.sqrt(count * part * (1 - part)) + 1e-9;
      const small = Math.min(of, 1 - of);
      expect(Math.abs(seen.canary - count * of)).toBeLessThan(near(of));
      expect(Math.abs(seen.baseline - count * small)).toBeLessThan(near(small));
    }
  });

  it('is drawn anew in each release', () => {
    let both = 0;
    for (let i = 0; i < 40_000; i++)
      if (armOf('rel_1', `${i}`, 0.1) === 'canary' && armOf('rel_2', `${i}`, 0.1) === 'canary') both++;
    expect(Math.abs(both - 400)).toBeLessThan(100);
  });
});

it('a session is told as something that says nothing of its arm', () => {
  // Sessions by the quarter of their place and the quarter of their hash: even in all sixteen (chi-square, 9 degrees, far tail).
  const cells = new Array<number>(16).fill(0);
  const count = 64_000;
  for (let i = 0; i < count; i++) {
    const place = Math.floor(placeOf('rel_3', `user-${i}`) * 4);
    const hash = Math.floor((sessionHash('rel_3', `user-${i}`) / 2 ** 32) * 4);
    cells[place * 4 + hash]!++;
  }
  const expected = count / 16;
  const chiSquare = cells.reduce((sum, seen) => sum + (seen - expected) ** 2 / expected, 0);
  expect(chiSquare).toBeLessThan(45);
});

describe('a session that the canary answered last', () => {
  it('stays there while the canary has a share, and counts by its arm all the same', () => {
    fc.assert(
      fc.property(session, share, (key, of) => {
        const { choice, reason } = canaryArm.decide(
          input({ session: key, share: of, last: 'next' }),
          0,
          nothing,
        );
        expect(choice.arm).toBe(armOf('rel_1', key, of));
        expect(choice.arm === 'canary' || choice.kept).toBe(of > 0);
        expect(reason.code).toBe(choice.kept ? 'canary-not-earlier' : `${choice.arm}-by-session`);
      }),
    );
  });

  it('is not kept for having been answered elsewhere', () => {
    const { choice } = canaryArm.decide(input({ share: 1e-9, last: 'stable' }), 0, nothing);
    expect(choice).toEqual({ arm: 'stable', kept: false });
  });
});

it('a recorded decision, replayed, is the same', () => {
  fc.assert(
    fc.property(
      release,
      session,
      share,
      fc.option(fc.constantFrom('next', 'old'), { nil: undefined }),
      (id, key, of, last) => {
        const taken = input({ release: id, session: key, share: of, last });
        const decision = canaryArm.decide(taken, 0, nothing);
        const recorded: unknown = JSON.parse(JSON.stringify(taken));
        expect(replayable.get('canary-arm')!.replay(recorded, nothing)).toEqual(decision);
      },
    ),
  );
});
