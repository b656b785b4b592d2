import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { timeBucket } from '../../kernel/buckets.ts';
import { mix32 } from '../../kernel/hash.ts';
import { type Action, type ArmEvidence, type Evidence, MARKS } from '../contracts.ts';
import type { ReleasePlan } from './contracts.ts';
import { CanaryMachine } from './machine.ts';

const HOUR_MS = 3_600_000;
const PLAN: ReleasePlan = {
  id: 'rel_1',
  route: 'chat',
  canary: 'next',
  gates: [],
  plan: [5, 25, 50, 100],
  step: { sessionsMin: 100, timeMinMs: 600_000 },
  deadlineMs: 24 * HOUR_MS,
  watchMs: HOUR_MS,
  alpha: 0.05,
  ratioMax: 2,
  errorRateMax: 0.01,
  qualityMargin: 0.05,
  metrics: ['errors'],
};

function arm(requests = 0, failed = 0, times: ArmEvidence['times'] = {}): ArmEvidence {
  return { requests, failed, tokensIn: 0, tokensOut: 0, cost: 0, times, costs: [] };
}

/** A release that time and evidence are given to by the minute; what it wants is carried out at once. */
class Played {
  machine: CanaryMachine;
  nowMs = 1_780_000_000_000;
  readonly actions: Action[] = [];
  #sessions = 0;
  #events = 0;

  constructor(plan: Partial<ReleasePlan> = {}) {
    this.machine = CanaryMachine.begin({ ...PLAN, ...plan }, this.nowMs);
  }

  get share(): number {
    return this.machine.report(this.nowMs).share;
  }

  get last(): string | undefined {
    return this.actions.at(-1)?.reason.code;
  }

  /** So many sessions of one request in the minute, every so many of which are marked; `told` spoils what is told. */
  minute(
    sessions: number,
    every: { canary?: number; stable?: number } = {},
    told: Partial<Evidence> = {},
  ): this {
    const share = this.share;
    const evidence = this.empty();
    const counts = { canary: arm(), baseline: arm(), stable: arm() };
    for (let i = 0; i < sessions; i++) {
      const place = (this.#sessions * 0.618034) % 1;
      const hash = mix32(this.#sessions++);
      const own = place < share ? 'canary' : place >= 1 - Math.min(share, 1 - share) ? 'baseline' : 'stable';
      const count = counts[own];
      const period = own === 'canary' ? every.canary : every.stable;
      const failed = period !== undefined && count.requests % period === period - 1;
      count.requests++;
      if (failed) count.failed++;
      const marks = failed ? MARKS.failed : 0;
      const code = { canary: 0, baseline: 1, stable: 2 }[own] as 0 | 1 | 2;
      if (code !== 2) evidence.firsts.push([hash, code, marks]);
      if (marks) evidence.marks.push([hash, code, marks]);
    }
    return this.tell({ ...evidence, arms: counts, ...told }).pass(60_000);
  }

  empty(): Evidence {
    const arms = { canary: arm(), baseline: arm(), stable: arm() };
    const of = { release: 'rel_1', route: 'chat', worker: 0, snapshot: 1, share: this.share };
    const times = { fromMs: this.nowMs, toMs: this.nowMs + 60_000 };
    const all = { firstsBelow: 2 ** 32, marksBelow: 2 ** 32, pairs: [], skipped: {} };
    return { ...of, ...times, arms, firsts: [], marks: [], ...all };
  }

  tell(evidence: Evidence): this {
    this.machine.evidence({ event: `evt_${++this.#events}`, evidence });
    return this;
  }

  pass(ms: number): this {
    this.nowMs += ms;
    for (let action = this.act(); action; action = this.act());
    return this;
  }

  act(): boolean {
    const actions = this.machine.advance(this.nowMs);
    for (const action of actions) {
      this.actions.push(action);
      this.machine.done(action, this.nowMs);
    }
    return actions.some(({ do: what }) => what !== 'hold');
  }

  until(of: () => void, minutes = 24 * 60): this {
    for (let i = 0; i < minutes && !this.machine.report(this.nowMs).ended; i++) of();
    return this;
  }

  get said(): string[] {
    return this.actions.map((action) => action.reason.code);
  }
}

describe('A release', () => {
  it('goes through its steps and is promoted, with a reason and causes for each', () => {
    const release = new Played();
    release.until(() => release.minute(600, { canary: 100, stable: 100 }));
    expect(release.said.filter((code) => code !== 'release-evidence-leans')).toEqual([
      'release-canary-begins',
      'release-step-passed',
      'release-step-passed',
      'release-certificates-wanting',
      'release-certified',
    ]);
    const promoted = release.actions.at(-1)!;
    expect(promoted.causes.length).toBeGreaterThan(0);
    expect(promoted.reason.figures).toMatchObject({ metrics: 'errors', ratio: 2, alpha: 0.05 });
    expect(release.machine.report(release.nowMs)).toMatchObject({ phase: 'promoted', share: 1, ended: true });
  });

  it('is rolled back when the canary fails more often, by the events that showed it', () => {
    const release = new Played();
    release.until(() => release.minute(600, { canary: 20, stable: 100 }));
    expect(release.last).toBe('release-metric-worse');
    const { reason, causes } = release.actions.at(-1)!;
    expect(reason.figures).toMatchObject({ metric: 'errors', at: 40 });
    expect(causes.at(-1)).toMatch(/^evt_/);
    expect(release.share).toBe(0);
  });

  it('compares counts, of which none is one too: stable without errors is a baseline (#22, kayenta#377)', () => {
    const release = new Played();
    release.until(() => release.minute(600, { canary: 50 }));
    expect(release.last).toBe('release-metric-worse');
  });

  it('is certified by an absolute bound where nothing fails anywhere', () => {
    const release = new Played();
    release.until(() => release.minute(600));
    expect(release.said).toContain('release-certified');
  });

  it('is never promoted without a request: it is held to its deadline, and goes back (#1, #16, #36)', () => {
    const release = new Played();
    release.until(() => release.minute(0), 25 * 60);
    expect(release.said).toEqual(['release-canary-begins', 'release-deadline-passed']);
    expect(release.actions.at(-1)).toMatchObject({
      do: 'roll-back',
      reason: { figures: { phase: 'canary', for: 'release-step-unripe' } },
    });
  });

  it('waits for enough sessions, however long a step has lasted (#36, #16)', () => {
    const release = new Played();
    for (let i = 0; i < 120; i++) release.minute(10);
    expect(release.share).toBe(0.05);
    expect(release.said).toEqual(['release-canary-begins']);
    expect(release.machine.report(release.nowMs).waitsFor?.code).toBe('release-step-unripe');
  });

  it('does not change its word when told again that it is carried out later', () => {
    const { machine, nowMs } = new Played();
    const [first] = machine.advance(nowMs);
    expect(machine.advance(nowMs + 1000)).toEqual([first]);
    const again = CanaryMachine.restore(JSON.parse(JSON.stringify(machine.state)));
    expect(again.advance(nowMs + 2000)).toEqual([first]);
  });

  it('has a deadline in every phase, and a way out (#18)', () => {
    const gates = new Played({ gates: ['parity'], phaseMs: { gates: HOUR_MS } });
    gates.pass(1000).pass(HOUR_MS);
    expect(gates.said).toEqual(['release-gates-open', 'release-deadline-passed']);
    const shadow = new Played({ shadow: { percent: 10, pairsMin: 100 }, phaseMs: { shadow: HOUR_MS } });
    shadow.pass(1000);
    expect(shadow.machine.report(shadow.nowMs).phase).toBe('shadow');
    shadow.pass(HOUR_MS);
    expect(shadow.said).toEqual(['release-pairs-wanting', 'release-deadline-passed']);
    const canary = new Played({ phaseMs: { canary: HOUR_MS } });
    canary.pass(1000).pass(HOUR_MS);
    expect(canary.said.at(-1)).toBe('release-deadline-passed');
  });
});

describe('An operator', () => {
  it('aborts whatever is under way, and nothing where nothing is (#7)', () => {
    const release = new Played();
    release.minute(100).machine.abort();
    release.pass(1000);
    expect(release.last).toBe('release-aborted-by-operator');
    expect(release.machine.abort()).toBe(false);
    expect(release.machine.promote()).toBe(false);
    expect(release.machine.advance(release.nowMs)).toEqual([]);
  });

  it('promotes without certificates, unless harm was seen or an abort was asked for', () => {
    const release = new Played();
    release.minute(100).machine.promote();
    release.pass(1000);
    expect(release.last).toBe('release-promoted-by-operator');
    const torn = new Played();
    torn.minute(100).machine.promote();
    torn.machine.abort();
    expect(torn.machine.promote()).toBe(false);
    torn.pass(1000);
    expect(torn.last).toBe('release-aborted-by-operator');
  });

  it('takes back even what is being carried out', () => {
    const release = new Played();
    const { machine } = release;
    expect(machine.advance(release.nowMs)).toMatchObject([{ do: 'share' }]);
    machine.abort();
    expect(machine.advance(release.nowMs)).toMatchObject([{ do: 'roll-back' }]);
  });
});

describe('Evidence that cannot be', () => {
  const broken: [string, (evidence: Evidence) => unknown][] = [
    ['NaN', (evidence) => ({ ...evidence, arms: { ...evidence.arms, canary: arm(10, Number.NaN) } })],
    [
      'null, as JSON makes of NaN',
      (evidence) => JSON.parse(JSON.stringify({ ...evidence, share: Number.NaN })),
    ],
    [
      'infinity',
      (evidence) => ({ ...evidence, arms: { ...evidence.arms, stable: arm(Number.POSITIVE_INFINITY) } }),
    ],
    ['below zero', (evidence) => ({ ...evidence, arms: { ...evidence.arms, stable: arm(-1) } })],
    [
      'more failures than requests',
      (evidence) => ({ ...evidence, arms: { ...evidence.arms, stable: arm(1, 2) } }),
    ],
    [
      'a bucket that is none',
      (evidence) => ({
        ...evidence,
        arms: { ...evidence.arms, canary: arm(1, 0, { a: [[1, Number.NaN]] }) },
      }),
    ],
    ['a missing member', ({ marks: _marks, ...evidence }) => evidence],
  ];

  it.each(broken)(
    '(%s) freezes the verdict: never promoted (Argo, Flagger, Kayenta on NaN)',
    (_name, spoil) => {
      const release = new Played();
      release.minute(600).tell(spoil(release.empty()) as Evidence);
      release.until(() => release.minute(600), 25 * 60);
      expect(release.said).toContain('release-evidence-broken');
      expect(release.said).not.toContain('release-certified');
      expect(release.last).toBe('release-deadline-passed');
    },
  );

  it('still lets harm be seen', () => {
    const release = new Played();
    release.minute(600).tell(broken[0]![1](release.empty()) as Evidence);
    release.until(() => release.minute(600, { canary: 20, stable: 100 }));
    expect(release.last).toBe('release-metric-worse');
  });

  it('is anything else than evidence, and stops nothing', () => {
    fc.assert(
      fc.property(fc.object(), fc.anything(), (members, value) => {
        const release = new Played();
        release.tell({ ...members, release: 'rel_1' } as unknown as Evidence);
        release.tell({ ...release.empty(), firsts: value, pairs: value } as unknown as Evidence);
        release.pass(1000);
        expect(release.said).not.toContain('release-certified');
      }),
    );
  });

  it('of another release is none of its business', () => {
    const release = new Played();
    release.minute(600, {}, { release: 'rel_2', share: Number.NaN });
    expect(release.machine.report(release.nowMs).arms.stable.requests).toBe(0);
    expect(release.said).not.toContain('release-evidence-broken');
  });
});

describe('Sessions', () => {
  it('count once for each mark, however often they fail and whoever tells it', () => {
    const release = new Played();
    release.pass(1000);
    const marks: Evidence['marks'] = [[7, 0, MARKS.failed]];
    for (let i = 0; i < 50; i++) release.tell({ ...release.empty(), worker: i % 2, marks });
    expect(release.machine.report(release.nowMs).metrics[0]).toMatchObject({ canary: 1, others: 0 });
  });

  it('that do not fall by the share freeze the verdict (#6, #20, #21)', () => {
    const release = new Played();
    release.until(() => {
      const evidence = release.empty();
      // Every third session of the canary is never told of.
      for (let i = 0; i < 100; i++) evidence.firsts.push([mix32(release.nowMs + i), i % 5 < 2 ? 0 : 1, 0]);
      release
        .tell({ ...evidence, arms: { ...evidence.arms, canary: arm(40), baseline: arm(60) } })
        .pass(60_000);
    }, 25 * 60);
    expect(release.said).toContain('release-arms-skewed');
    expect(release.last).toBe('release-deadline-passed');
  });
});

describe('A broken stable', () => {
  it('does not keep a canary that is well from its release (#12, argo-rollouts#1774)', () => {
    const release = new Played({ metrics: ['errors', 'latency'] });
    release.until(() => release.minute(600, { stable: 2 }));
    expect(release.said).toContain('release-certified-as-stable-broken');
    expect(release.machine.report(release.nowMs).phase).toBe('promoted');
  });

  it('does not excuse a canary that fails as well', () => {
    const release = new Played({ metrics: ['errors', 'latency'] });
    release.until(() => release.minute(60, { stable: 2, canary: 3 }), 25 * 60);
    expect(release.last).toBe('release-deadline-passed');
  });
});

describe('A promoted backend', () => {
  it('is watched, and goes back when it fails more often than it may (#17, #18, flagger#1898)', () => {
    const release = new Played();
    while (release.share < 1) release.minute(600);
    release.minute(600, { canary: 20 }).minute(600, { canary: 20 });
    expect(release.last).toBe('release-worse-after-promotion');
    expect(release.machine.report(release.nowMs)).toMatchObject({
      phase: 'rolled-back',
      share: 0,
      ended: true,
    });
  });

  it('is let go of after that time, and cannot be aborted any more', () => {
    const release = new Played();
    while (release.share < 1) release.minute(600);
    expect(release.machine.report(release.nowMs).watchedUntilMs).toBe(release.nowMs + HOUR_MS);
    release.pass(HOUR_MS);
    expect(release.machine.report(release.nowMs).ended).toBe(true);
    expect(release.machine.abort()).toBe(false);
  });
});

describe('Edges', () => {
  const times = (count: number): ArmEvidence['times'] => ({
    'chat/64': Array.from({ length: 100 }, (_, i) => [timeBucket(100 + 10 * i), count / 100]),
  });

  it('are frozen from stable before the canary begins, and waited for until then (#36)', () => {
    const release = new Played({ metrics: ['errors', 'latency'] });
    release
      .tell({ ...release.empty(), arms: { ...release.empty().arms, stable: arm(500, 0, times(500)) } })
      .pass(60_000);
    expect(release.said).toEqual(['release-edges-wanting']);
    release
      .tell({ ...release.empty(), arms: { ...release.empty().arms, stable: arm(500, 0, times(500)) } })
      .pass(60_000);
    expect(release.said).toEqual(['release-edges-wanting', 'release-edges-frozen', 'release-canary-begins']);
    expect(release.machine.report(release.nowMs).arms.stable.times['chat/64']).toMatchObject({
      count: 1000,
      within: 0.0858,
    });
    const { p95, p99 } = release.machine.report(release.nowMs).edges!.times['chat/64']!;
    expect(p95 / 1050).toBeGreaterThan(0.96);
    expect(p95 / 1050).toBeLessThan(1.04);
    expect(p99 / 1090).toBeLessThan(1.04);
    expect(p99).toBeGreaterThan(p95);
  });
});

describe('A gate', () => {
  it('is waited for, and one that is not passed ends the release', () => {
    const release = new Played({ gates: ['parity', 'stress'] });
    release.pass(1000);
    release.machine.gate('parity', true, 'evt_parity');
    release.pass(1000);
    expect(release.share).toBe(0);
    release.machine.gate('stress', false, 'evt_stress');
    release.pass(1000);
    expect(release.actions.at(-1)).toMatchObject({
      do: 'roll-back',
      reason: { code: 'release-gate-failed', figures: { gate: 'stress' } },
      causes: ['evt_parity', 'evt_stress'],
    });
  });
});

describe('Answers to copies', () => {
  const pairs = (count: number, from: number, difference: number): Evidence['pairs'] =>
    Array.from({ length: count }, (_, i) => ({
      session: mix32(from + i),
      request: `req_${i}`,
      difference: i % 10 === 0 ? difference : 0,
      by: 'exact',
    }));
  const plan: Partial<ReleasePlan> = {
    metrics: ['errors', 'quality'],
    shadow: { percent: 20, pairsMin: 50 },
  };

  it('that are as good let the canary begin', () => {
    const release = new Played(plan);
    release.tell({ ...release.empty(), pairs: pairs(60, 0, 0) }).pass(1000);
    expect(release.said).toEqual(['release-certificates-wanting']);
    release.tell({ ...release.empty(), pairs: pairs(600, 1000, 0.1) }).pass(60_000);
    expect(release.said.at(-1)).toBe('release-canary-begins');
  });

  it('that are worse roll it back before a caller meets it; those of one session count as one', () => {
    const release = new Played(plan);
    const alike = Array.from({ length: 500 }, () => ({
      session: 1,
      request: 'r',
      difference: 1,
      by: 'exact',
    }));
    release.tell({ ...release.empty(), pairs: alike }).pass(1000);
    expect(release.said).toEqual(['release-pairs-wanting']);
    release
      .tell({ ...release.empty(), pairs: pairs(600, 0, 1).map((pair) => ({ ...pair, difference: 0.3 })) })
      .pass(1000);
    expect(release.actions.at(-1)).toMatchObject({
      do: 'roll-back',
      reason: { code: 'release-metric-worse', figures: { metric: 'quality' } },
    });
  });
});

it('goes on from its state as if control had not died, wherever that was', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          sessions: fc.integer({ min: 0, max: 400 }),
          canary: fc.integer({ min: 5, max: 80 }),
          stable: fc.integer({ min: 5, max: 80 }),
          dies: fc.boolean(),
        }),
        { minLength: 20, maxLength: 60 },
      ),
      (minutes) => {
        const whole = new Played({ plan: 'auto' });
        const restarted = new Played({ plan: 'auto' });
        for (const { sessions, canary, stable, dies } of minutes) {
          whole.minute(sessions, { canary, stable });
          if (dies)
            restarted.machine = CanaryMachine.restore(JSON.parse(JSON.stringify(restarted.machine.state)));
          restarted.minute(sessions, { canary, stable });
        }
        expect(restarted.actions).toEqual(whole.actions);
        expect(restarted.machine.state).toEqual(whole.machine.state);
      },
    ),
    { numRuns: 30 },
  );
});
