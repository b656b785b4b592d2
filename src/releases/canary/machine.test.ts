import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arm, HOUR_MS, Played } from '../../../test/releases/played-release.ts';
import { timeBucket } from '../../kernel/buckets.ts';
import { mix32 } from '../../kernel/hash.ts';
import type { ArmEvidence, Evidence } from '../contracts.ts';
import type { ReleasePlan } from './contracts.ts';
import { CanaryMachine } from './machine.ts';

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

  it('pauses when nothing comes, and goes on when something does (#5)', () => {
    const release = new Played();
    for (let i = 0; i < 15; i++) release.minute(60);
    const { share } = release;
    release.pass(12 * HOUR_MS);
    expect(release.share).toBe(share);
    release.until(() => release.minute(600));
    expect(release.said).toContain('release-certified');
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

describe('A canary whose times say nothing', () => {
  const other = arm(20, 0, { 'chat/1024': [[timeBucket(5000), 20]] });

  it.each([
    ['as nobody tells them', {}],
    ['as no edges are known of such requests', { arms: { canary: other, baseline: other, stable: other } }],
  ])('is never certified in latency for never having been slow: %s (#23, kayenta#700; #2)', (_why, told) => {
    const release = new Played({ metrics: ['errors', 'latency'] });
    const stable = arm(2000, 0, { 'chat/64': [[timeBucket(100), 2000]] });
    release.tell({ ...release.empty(), arms: { ...release.empty().arms, stable } }).pass(60_000);
    release.machine = CanaryMachine.restore(release.machine.state);
    release.until(() => release.minute(60, {}, told), 25 * 60);
    expect(release.said).toContain('release-certificates-wanting');
    expect(release.actions.at(-1)).toMatchObject({
      reason: { code: 'release-deadline-passed', figures: { for: 'release-certificates-wanting' } },
    });
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
