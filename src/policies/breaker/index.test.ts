import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { Breaker } from './index.ts';

const middle = { next: () => 0.5 };

/** A breaker that has just opened, with what is needed to bring it there. */
function opened(random = middle): Breaker {
  const breaker = new Breaker(random);
  for (let i = 0; i < 5; i++) breaker.observe({ kind: 'failure', trial: false }, 0);
  return breaker;
}

describe('a closed breaker', () => {
  it('lets everything pass, and opens at the fifth failure in a row', () => {
    const breaker = new Breaker(middle);
    for (let i = 0; i < 4; i++) breaker.observe({ kind: 'failure', trial: false }, i);
    expect(breaker.decide(undefined, 5).choice).toBe('pass');
    breaker.observe({ kind: 'failure', trial: false }, 5);
    expect([breaker.state, breaker.decide(undefined, 6).choice]).toEqual(['open', 'fenced']);
    expect(breaker.figures()).toEqual({ inARow: 5, failures: 5, answers: 5, openings: 1 });
  });

  it('begins to count anew after a success', () => {
    const breaker = new Breaker(middle);
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 4; i++) breaker.observe({ kind: 'failure', trial: false }, round * 10_001);
      breaker.observe({ kind: 'success', trial: false }, round * 10_001);
    }
    expect(breaker.state).toBe('closed');
  });

  it('opens when half of twenty answers within ten seconds have failed', () => {
    const breaker = new Breaker(middle);
    const answer = (i: number, at: number) =>
      breaker.observe({ kind: i % 2 === 0 ? 'success' : 'failure', trial: false }, at);
    for (let i = 0; i < 19; i++) answer(i, i);
    expect(breaker.state).toBe('closed');
    answer(19, 19);
    expect(breaker.state).toBe('open');
  });

  it('forgets answers of a window that is over', () => {
    const breaker = new Breaker(middle);
    for (let i = 0; i < 200; i++) {
      breaker.observe({ kind: i % 2 === 0 ? 'success' : 'failure', trial: false }, i * 600);
    }
    expect(breaker.state).toBe('closed');
  });

  it('is not moved by what was abandoned: callers who leave, their mistakes, engines that are busy', () => {
    const breaker = new Breaker(middle);
    for (let i = 0; i < 100; i++) breaker.observe({ kind: 'abandoned', trial: false }, i);
    expect(breaker.figures()).toEqual({ inARow: 0, failures: 0, answers: 0, openings: 0 });
    expect(breaker.state).toBe('closed');
  });
});

describe('an open breaker', () => {
  it('lets one request at a time through on trial once its time is over, and closes after a good one', () => {
    const breaker = opened();
    expect([breaker.waitMs(0), breaker.waitMs(999), breaker.waitMs(1000)]).toEqual([1000, 1, 0]);
    expect(breaker.decide(undefined, 999)).toEqual({
      choice: 'fenced',
      reason: { code: 'breaker-open', figures: { forMs: 1 } },
    });
    expect(breaker.decide(undefined, 1000).choice).toBe('trial');
    expect(breaker.state).toBe('half-open');
    expect(breaker.waitMs(1000)).toBe(Number.POSITIVE_INFINITY);
    // The time that it was to stay open is over; only the trial is waited for.
    expect(breaker.decide(undefined, 5000)).toEqual({
      choice: 'fenced',
      reason: { code: 'breaker-open', figures: { forMs: 0 } },
    });
    breaker.observe({ kind: 'success', trial: true }, 5001);
    expect([breaker.state, breaker.decide(undefined, 5001).choice]).toEqual(['closed', 'pass']);
    expect(breaker.figures()).toEqual({ inARow: 0, failures: 0, answers: 0, openings: 0 });
  });

  it('frees the trial when it is abandoned', () => {
    const breaker = opened();
    for (let i = 0; i < 10; i++) {
      expect(breaker.decide(undefined, 2000).choice).toBe('trial');
      expect(breaker.decide(undefined, 2000).choice).toBe('fenced');
      breaker.observe({ kind: 'abandoned', trial: true }, 2000);
      expect([breaker.state, breaker.waitMs(2000)]).toEqual(['half-open', 0]);
    }
  });

  it('is not moved by requests that were sent before it opened', () => {
    const breaker = opened();
    breaker.decide(undefined, 1000);
    breaker.observe({ kind: 'success', trial: false }, 1001);
    expect(breaker.state).toBe('half-open');
    for (let i = 0; i < 30; i++) breaker.observe({ kind: 'failure', trial: false }, 1001);
    expect(breaker.state).toBe('half-open');
    expect(breaker.waitMs(1001)).toBe(Number.POSITIVE_INFINITY);
  });

  it('stays open twice as long after each bad trial, up to 30 s, and for one second again once it was closed', () => {
    const breaker = opened();
    let now = 0;
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      waits.push(breaker.waitMs(now));
      now += breaker.waitMs(now);
      expect(breaker.decide(undefined, now).choice).toBe('trial');
      breaker.observe({ kind: i < 7 ? 'failure' : 'success', trial: true }, now);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    for (let i = 0; i < 5; i++) breaker.observe({ kind: 'failure', trial: false }, now);
    expect(breaker.waitMs(now)).toBe(1000);
  });

  it('is moved by up to a fifth', () => {
    expect(opened({ next: () => 0 }).waitMs(0)).toBe(800);
    expect(opened({ next: () => 1 - 2 ** -32 }).waitMs(0)).toBeCloseTo(1200, 3);
  });
});

const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('ask' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      which: fc.nat(),
      kind: fc.constantFrom('success' as const, 'failure' as const, 'failure' as const, 'abandoned' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(4000) }) },
);

it('whatever happens: nothing passes while it is open, one trial at a time, closed by a good trial alone', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 300 }), fc.nat(), (events, seed) => {
      const breaker = new Breaker(seededRandom(seed));
      const running: { trial: boolean }[] = [];
      let [now, openUntil, openings] = [0, 0, 0];
      for (const each of events) {
        const before = breaker.state;
        let [asked, goodTrial] = [false, false];
        if (each.do === 'wait') now += each.ms;
        else if (each.do === 'ask') {
          asked = true;
          const { choice } = breaker.decide(undefined, now);
          if (choice === 'pass') expect(before).toBe('closed');
          if (choice === 'trial') expect(running.some(({ trial }) => trial)).toBe(false);
          if (before === 'open') expect(choice).toBe(now < openUntil ? 'fenced' : 'trial');
          if (before === 'half-open') {
            expect(choice).toBe(running.some(({ trial }) => trial) ? 'fenced' : 'trial');
          }
          if (choice !== 'fenced') running.push({ trial: choice === 'trial' });
        } else if (running.length > 0) {
          const [request] = running.splice(each.which % running.length, 1);
          breaker.observe({ kind: each.kind, trial: request!.trial }, now);
          goodTrial = request!.trial && each.kind === 'success';
        }
        if (before !== 'open' && breaker.state === 'open') {
          openings++;
          const base = Math.min(30_000, 1000 * 2 ** (openings - 1));
          openUntil = now + breaker.waitMs(now);
          expect(openUntil - now).toBeGreaterThanOrEqual(base * 0.8 - 1e-6);
          expect(openUntil - now).toBeLessThanOrEqual(base * 1.2 + 1e-6);
        }
        if (before !== 'closed' && breaker.state === 'closed') {
          expect(goodTrial).toBe(true);
          openings = 0;
        }
        if (before === 'open' && breaker.state !== 'open')
          expect([asked, breaker.state]).toEqual([true, 'half-open']);
      }
    }),
    { numRuns: 300 },
  );
});
