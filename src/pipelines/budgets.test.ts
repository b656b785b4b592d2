import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../config/schema/index.ts';
import { autoBudgetMs, dueAt } from './budgets.ts';
import { type PlannedStage, planPipeline } from './plan.ts';
import { StageTimes } from './stage-times.ts';

/** The stages of a pipeline by name, each with what it took lately. */
function planned(stages: Record<string, object>, usualMs: Record<string, number> = {}) {
  const { pipelines } = settingsSchema.parse({
    backends: {},
    routes: {},
    pipelines: {
      search: {
        stages: Object.fromEntries(
          Object.entries(stages).map(([name, stage]) => [name, { route: 'r', input: 'x', ...stage }]),
        ),
      },
    },
  });
  const plan = planPipeline('search', pipelines['search']!, (stage) => {
    const times = new StageTimes();
    const ms = usualMs[stage];
    if (ms !== undefined) for (let i = 0; i < 10; i++) times.observe(ms);
    return times;
  });
  return Object.fromEntries(plan.stages.map((stage) => [stage.name, stage])) as Record<string, PlannedStage>;
}

describe('the time of a stage', () => {
  it('is its budget, a ceiling below the deadline of the pipeline', () => {
    const { a } = planned({ a: { budget: '100ms' } });
    expect(dueAt(a!, 1000, 1500)).toBe(1100);
    expect(dueAt(a!, 1450, 1500)).toBe(1500);
  });

  it('is all that is left, where it has no budget', () => {
    const { a } = planned({ a: {}, b: { after: ['a'] } });
    expect(dueAt(a!, 1000, 1500)).toBe(1500);
  });
});

describe('budget: auto', () => {
  const chain = {
    a: { budget: 'auto' },
    b: { budget: 'auto', after: ['a'] },
    c: { budget: 'auto', after: ['b'] },
  };

  it('gives equal parts while nothing was measured', () => {
    const { a, b, c } = planned(chain);
    expect(autoBudgetMs(a!, 300)).toBe(100);
    expect(autoBudgetMs(b!, 200)).toBe(100);
    expect(autoBudgetMs(c!, 100)).toBe(100);
  });

  it('gives parts by what stages took lately', () => {
    const { a, b } = planned(chain, { a: 10, b: 30, c: 60 });
    expect(autoBudgetMs(a!, 500)).toBe(50);
    expect(autoBudgetMs(b!, 450)).toBe(150);
  });

  it('takes a stage that was not measured yet for one like the others', () => {
    const { a, b } = planned(chain, { a: 10, c: 30 });
    expect(autoBudgetMs(a!, 600)).toBe(100);
    expect(autoBudgetMs(b!, 500)).toBe(250);
  });

  it('leaves fixed budgets alone, and counts stages without one among those that share', () => {
    const { a } = planned({
      a: { budget: 'auto' },
      b: { budget: '100ms', after: ['a'] },
      c: { after: ['b'] },
    });
    expect(autoBudgetMs(a!, 300)).toBe(100);
  });

  it('goes by the way that takes longest', () => {
    const stages = {
      a: { budget: 'auto' },
      short: { budget: 'auto', after: ['a'] },
      long: { budget: 'auto', after: ['a'] },
      end: { budget: 'auto', after: ['short', 'long'] },
    };
    const { a, short } = planned(stages, { a: 10, short: 10, long: 70, end: 20 });
    expect(autoBudgetMs(a!, 1000)).toBe(100);
    // Beside the long one it has time: what it leaves over is nobody's.
    expect(autoBudgetMs(short!, 900)).toBe(300);
  });

  it('counts a stage that asks nobody for nothing', () => {
    const { a } = planned({
      a: { budget: 'auto' },
      b: { budget: 'auto', after: ['a'] },
      end: { route: undefined, input: undefined, first: ['b', 'a'] },
    });
    expect(autoBudgetMs(a!, 100)).toBe(50);
  });

  it('gives each stage in a row some time, and together no more than there is', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ ms: fc.option(fc.nat(500)), fixed: fc.option(fc.integer({ min: 1, max: 50 })) }),
          {
            minLength: 1,
            maxLength: 10,
          },
        ),
        fc.integer({ min: 1000, max: 5000 }),
        (row, deadlineMs) => {
          const stages: Record<string, object> = {};
          const usual: Record<string, number> = {};
          for (const [i, { ms, fixed }] of row.entries()) {
            const budget = fixed === null ? 'auto' : `${fixed}ms`;
            stages[`s${i}`] = { budget, after: i === 0 ? [] : [`s${i - 1}`] };
            if (ms !== null) usual[`s${i}`] = ms;
          }
          const by = planned(stages, usual);
          let now = 0;
          for (const name of Object.keys(stages)) {
            const due = dueAt(by[name]!, now, deadlineMs);
            expect(due).toBeGreaterThan(now);
            now = due; // it takes all the time that it has
          }
          expect(now).toBeLessThanOrEqual(deadlineMs + 1e-6);
        },
      ),
    );
  });
});
