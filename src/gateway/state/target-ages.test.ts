import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { targetByWeight } from '../../policies/target-by-weight/index.ts';
import { TargetAges } from './target-ages.ts';

const weights = (all: Record<string, number>) =>
  Object.entries(all).map(([backend, weight]) => ({ backend, weight }));

function agesOf(...steps: Record<string, number>[]): TargetAges {
  const ages = new TargetAges();
  for (const [at, step] of steps.entries()) ages.observe(weights(step), at + 1);
  return ages;
}

const isLater = (ages: TargetAges, one: string, other: string) => ages.since(one) > ages.since(other);

describe('which target came later', () => {
  it('is not known of those that the first snapshot has', () => {
    const ages = agesOf({ a: 95, b: 5 }, { a: 95, b: 5 }, { a: 190, b: 10 });
    expect(ages.since('a')).toBe(ages.since('b'));
  });

  it('is the one that had weight later', () => {
    expect(isLater(agesOf({ a: 1 }, { a: 95, b: 5 }, { a: 99, b: 1 }), 'b', 'a')).toBe(true);
    expect(isLater(agesOf({ a: 1, b: 0 }, { a: 1, b: 1 }), 'b', 'a')).toBe(true);
  });

  it('is the one that was raised first, of those that were there from the start', () => {
    const ages = agesOf({ a: 95, b: 5 }, { a: 50, b: 50 }, { a: 80, b: 20 });
    expect(isLater(ages, 'b', 'a')).toBe(true);
  });

  it('is forgotten of one that lost its weight', () => {
    const ages = agesOf({ a: 1 }, { a: 1, b: 1 }, { a: 0, b: 1 }, { a: 1, b: 1 });
    expect(isLater(ages, 'a', 'b')).toBe(true);
  });

  it('stays as it is while a third one comes', () => {
    const ages = agesOf({ a: 9, b: 1 }, { a: 5, b: 5 }, { a: 5, b: 5, c: 1 }, { a: 8, b: 1, c: 1 });
    expect([isLater(ages, 'b', 'a'), isLater(ages, 'c', 'b')]).toEqual([true, true]);
  });
});

describe('a session, whatever becomes of the weights', () => {
  const random = seededRandom(1);

  it('never goes back to the target before while the later one has weight', () => {
    const shares = fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(shares, fc.boolean(), fc.string(), (canary, fromTheStart, session) => {
        const ages = new TargetAges();
        ages.observe(weights(fromTheStart ? { old: 99, new: 1 } : { old: 100, new: 0 }), 1);
        let last = 'old';
        let number = 1;
        let before = fromTheStart ? 1 : 0;
        let raised = !fromTheStart;
        for (const share of canary) {
          raised ||= share > before;
          ages.observe(weights({ old: 100 - share, new: share }), ++number);
          before = share;
          const targets = ['old', 'new']
            .map((name, at) => ({ name, weight: at === 0 ? 100 - share : share }))
            .filter(({ weight }) => weight > 0)
            .map((each) => ({ ...each, since: ages.since(each.name), model: each.name }));
          const { choice } = targetByWeight.decide({ session, targets, last, stoodIn: false }, 0, random);
          // A rollback makes the old one the present one; what is raised after it is new again.
          if (share === 0 || share === 100) return;
          if (raised && last === 'new') expect(choice).toBe('new');
          last = choice;
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('goes forward to a target whose weight grows, and is all there in the end', () => {
    const ages = agesOf({ old: 100, new: 0 }, { old: 50, new: 50 });
    const targets = [
      { name: 'old', weight: 1, since: ages.since('old'), model: 'm1' },
      { name: 'new', weight: 99_999, since: ages.since('new'), model: 'm2' },
    ];
    const input = { session: 's', targets, last: 'old', stoodIn: false };
    expect(targetByWeight.decide(input, 0, random).choice).toBe('new');
  });
});

describe('a target that stood in for another', () => {
  const random = seededRandom(1);
  const choice = (model: string, stoodIn: boolean) => {
    const targets = [
      { name: 'own', weight: 1e6, since: 0, model: 'm' },
      { name: 'other', weight: 1, since: 2, model },
    ];
    return targetByWeight.decide({ session: 's', targets, last: 'other', stoodIn }, 0, random).choice;
  };

  it('is left again for the same model, and not for an older one', () => {
    expect(choice('m', true)).toBe('own');
    expect(choice('m2', true)).toBe('other');
    expect(choice('m', false)).toBe('other');
  });
});
