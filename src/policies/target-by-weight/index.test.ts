import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayedRandom, seededRandom } from '../../kernel/random.ts';
import { replayable } from '../register.ts';
import { type TargetInput, targetByWeight } from './index.ts';

type Target = TargetInput['targets'][number];

const chance = seededRandom(1);
const choose = (targets: Target[], session?: string, random = chance) =>
  targetByWeight.decide({ session, targets }, 0, random).choice;

const targets = fc
  .array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 6 })
  .map((weights) => weights.map((weight, at) => ({ name: `backend-${at}`, weight })));
const several = targets.filter(({ length }) => length > 1);
const session = fc.string({ maxLength: 40 });

/** How far, in standard deviations, each target's count lies from its share of so many choices. */
function deviations(of: Target[], choices: string[]): number[] {
  const sum = of.reduce((total, { weight }) => total + weight, 0);
  return of.map(({ name, weight }) => {
    const share = weight / sum;
    const count = choices.filter((choice) => choice === name).length;
    return Math.abs(count - choices.length * share) / Math.sqrt(choices.length * share * (1 - share));
  });
}

describe('without a session', () => {
  it.each([1, 2, 3, 4, 5])('meets the weights over many draws (seed %i)', (seed) => {
    const random = seededRandom(seed);
    for (const weights of [
      [1, 1],
      [95, 5],
      [0.5, 0.25, 0.25],
      [1, 2, 3, 4, 90],
    ]) {
      const of = weights.map((weight, at) => ({ name: `backend-${at}`, weight }));
      const choices = Array.from({ length: 10_000 }, () => choose(of, undefined, random));
      for (const deviation of deviations(of, choices)) expect(deviation).toBeLessThan(5);
    }
  });

  it('finds a target for every draw there is, and takes one draw only', () => {
    const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const weights = fc.array(fc.double({ min: 1e-9, max: 1e9, noNaN: true }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(weights, draw, (all, drawn) => {
        const of = all.map((weight, at) => ({ name: `backend-${at}`, weight }));
        expect(of.map(({ name }) => name)).toContain(choose(of, undefined, replayedRandom([drawn])));
      }),
    );
  });
});

describe('a session', () => {
  it.each(['chat', 'user-', ''])('spreads with others of its kind by weight (%j)', (prefix) => {
    for (const weights of [
      [1, 1],
      [95, 5],
      [1, 2, 3, 4],
    ]) {
      const of = weights.map((weight, at) => ({ name: `backend-${at}`, weight }));
      const choices = Array.from({ length: 10_000 }, (_, i) => choose(of, `${prefix}${i}`));
      for (const deviation of deviations(of, choices)) expect(deviation).toBeLessThan(5);
    }
  });

  it('takes no draw, and stays whatever the order of the targets', () => {
    fc.assert(
      fc.property(several, session, (of, key) => {
        const choice = choose(of, key, replayedRandom([]));
        expect(choose([...of].reverse(), key, replayedRandom([]))).toBe(choice);
      }),
    );
  });

  it('never moves while its target is well: only its own sessions move when one goes or comes', () => {
    fc.assert(
      fc.property(several, fc.nat(), session, (of, at, key) => {
        const gone = of[at % of.length]!;
        const rest = of.filter((target) => target !== gone);
        const before = choose(of, key);
        if (before === gone.name) expect(rest.map(({ name }) => name)).toContain(choose(rest, key));
        else expect(choose(rest, key)).toBe(before);
      }),
      { numRuns: 500 },
    );
  });

  it('moves only to a target whose weight was raised', () => {
    fc.assert(
      fc.property(several, fc.nat(), session, (of, at, key) => {
        const raised = of[at % of.length]!;
        const after = of.map((target) =>
          target === raised ? { ...target, weight: target.weight * 2 } : target,
        );
        const before = choose(of, key);
        expect([before, raised.name]).toContain(choose(after, key));
      }),
      { numRuns: 500 },
    );
  });
});

it('a recorded decision, replayed, is the same', () => {
  fc.assert(
    fc.property(targets, fc.option(session, { nil: undefined }), fc.nat(), (of, key, seed) => {
      const draws: number[] = [];
      const random = seededRandom(seed);
      const kept = { next: () => draws[draws.push(random.next()) - 1]! };
      const input = { session: key, targets: of };
      const decision = targetByWeight.decide(input, 0, kept);
      const recorded: unknown = JSON.parse(JSON.stringify(input));
      const replayed = replayable.get('target-by-weight')!.replay(recorded, replayedRandom(draws));
      expect(replayed).toEqual(decision);
      expect(decision.reason.figures).toEqual({ target: decision.choice, targets: of.length });
    }),
  );
});
