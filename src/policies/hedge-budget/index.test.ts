import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HedgeBudget } from './index.ts';

describe('the budget of hedges', () => {
  it('begins with one, and says what is left', () => {
    const budget = new HedgeBudget();
    expect(budget.decide({ budget: 0.05 })).toEqual({
      choice: true,
      reason: { code: 'hedge-granted', figures: { saved: 0, budget: 0.05 } },
    });
    expect(budget.decide({ budget: 0.05 })).toEqual({
      choice: false,
      reason: { code: 'hedge-budget-spent', figures: { saved: 0, budget: 0.05 } },
    });
  });

  it('with a share of 0 grants nothing', () => {
    expect(new HedgeBudget().decide({ budget: 0 }).choice).toBe(false);
  });

  it('has back what reached nobody', () => {
    const budget = new HedgeBudget();
    expect(budget.decide({ budget: 0.05 }).choice).toBe(true);
    budget.giveBack();
    expect(budget.decide({ budget: 0.05 }).choice).toBe(true);
  });

  it('over any sequence grants at most one more than its share of requests, and saves no more than ten', () => {
    const event = fc.constantFrom('request', 'request', 'request', 'hedge');
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 500 }),
        fc.constantFrom(0.01, 0.05, 0.25, 1),
        (events, share) => {
          const budget = new HedgeBudget();
          let [requests, granted, inARow] = [0, 0, 0];
          for (const each of events) {
            if (each === 'request') {
              budget.observe({ budget: share });
              requests++;
              inARow = 0;
            } else if (budget.decide({ budget: share }).choice) {
              granted++;
              inARow++;
            }
            expect(granted).toBeLessThanOrEqual(1 + share * requests + 1e-9);
            expect(inARow).toBeLessThanOrEqual(10);
          }
        },
      ),
    );
  });
});
