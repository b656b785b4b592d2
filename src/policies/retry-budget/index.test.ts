import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetryBudget } from './index.ts';

/** How many retries in a row are granted at this moment. */
function drain(budget: RetryBudget, now: number, share = 0.1): number {
  let granted = 0;
  while (granted < 100 && budget.decide({ budget: share }, now).choice) granted++;
  return granted;
}

describe('the retry budget', () => {
  it('has a reserve of ten, and says what is left', () => {
    const budget = new RetryBudget();
    expect(budget.decide({ budget: 0.1 }, 0)).toEqual({
      choice: true,
      reason: { code: 'retry-granted', figures: { saved: 9, budget: 0.1 } },
    });
    expect(drain(budget, 0)).toBe(9);
    expect(budget.decide({ budget: 0.1 }, 0)).toEqual({
      choice: false,
      reason: { code: 'retry-budget-spent', figures: { saved: 0, budget: 0.1 } },
    });
  });

  it('earns one retry a second, and saves no more than the reserve', () => {
    const budget = new RetryBudget();
    drain(budget, 0);
    expect(drain(budget, 3_500)).toBe(3);
    expect(drain(budget, 4_000)).toBe(1);
    expect(drain(budget, 3_600_000)).toBe(10);
  });

  it('earns its share of every request', () => {
    const budget = new RetryBudget();
    drain(budget, 0);
    for (let i = 0; i < 50; i++) budget.observe({ budget: 0.25 });
    expect(drain(budget, 0)).toBe(10);
    for (let i = 0; i < 9; i++) budget.observe({ budget: 0.25 });
    expect(drain(budget, 0)).toBe(2);
  });

  it('with a share of 0 grants nothing', () => {
    const budget = new RetryBudget();
    for (let i = 0; i < 1000; i++) budget.observe({ budget: 0.5 });
    expect([drain(budget, 0, 0), drain(budget, 60_000, 0), drain(budget, 60_000)]).toEqual([0, 0, 10]);
  });

  it('over any sequence grants no more than the reserve, what time earned and the share of requests', () => {
    const event = fc.oneof(
      fc.record({ do: fc.constant('request' as const), share: fc.constantFrom(0, 0.01, 0.1, 0.5, 1) }),
      fc.record({ do: fc.constant('retry' as const), share: fc.constantFrom(0, 0.1, 1) }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.nat(5_000) }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 300 }), (events) => {
        const budget = new RetryBudget();
        let [now, earned, granted, spent] = [0, 0, 0, 0];
        for (const each of events) {
          if (each.do === 'wait') now += each.ms;
          else if (each.do === 'request') {
            budget.observe({ budget: each.share });
            earned += each.share;
          } else if (budget.decide({ budget: each.share }, now).choice) granted++;
          else if (each.share > 0) spent++;
          expect(granted).toBeLessThanOrEqual(10 + now / 1000 + earned + 1e-9);
        }
        // Nothing is withheld before the reserve is gone.
        if (spent > 0) expect(granted).toBeGreaterThanOrEqual(10);
      }),
      { numRuns: 300 },
    );
  });
});
