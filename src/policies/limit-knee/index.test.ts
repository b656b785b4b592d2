import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import type { LimitSample } from '../limit-contract.ts';
import { KneeLimit } from './index.ts';

const UNIT = 100;

/**
 * An engine that runs `places` requests together, each for `heldMs` (longer by `slope` in a full batch), with a queue in
 * front, and callers that never have enough: a first token waits for its turn.
 */
function rig(engine: { places: number; heldMs: number; slope?: number; noise?: number; whole?: boolean }) {
  const limit = new KneeLimit();
  const random = seededRandom(7);
  let now = 0;
  const trace: number[] = [];
  const run = (answers: number, more: Partial<LimitSample> = {}) => {
    for (let i = 0; i < answers; i++) {
      const { places, heldMs, slope = 0, noise = 0.1, whole = false } = engine;
      const n = limit.starting ? Math.max(20, limit.limit / UNIT) : Math.max(1, limit.limit / UNIT);
      const running = Math.min(n, places);
      const service = heldMs * (1 + (slope * running) / places);
      const waitMs = n > places ? ((n - places) / places) * service : 0;
      const drawn = 1 + noise * (2 * random.next() - 1);
      now += service / running;
      limit.observe(
        {
          sentAt: now,
          whole,
          ratio: 1,
          excess: whole ? ((service + waitMs) / heldMs) * drawn - 1 : (waitMs + 0.02 * service) * drawn,
          held: whole ? (service + waitMs) / heldMs : service + waitMs,
          share: 0.5,
          allowedPart: 1,
          inFlight: n * UNIT,
          unit: UNIT,
          saturated: true,
          ...more,
        },
        now,
      );
      trace.push(limit.limit / UNIT);
    }
  };
  return { limit, run, trace, requests: () => limit.limit / UNIT, engine, now: () => now };
}

const spread = (of: number[]) => [Math.min(...of), Math.max(...of)] as const;

describe('by first tokens', () => {
  it('finds what an engine runs together, from far below and far above, and stays there', () => {
    fc.assert(
      fc.property(fc.integer({ min: 6, max: 300 }), fc.integer({ min: 50, max: 5000 }), (places, heldMs) => {
        const { run, trace } = rig({ places, heldMs });
        run(800);
        const settled = trace.length;
        run(1500);
        const [low, high] = spread(trace.slice(settled));
        expect(low).toBeGreaterThan(places * 0.8);
        // Of all places from 6 to 300 the most is 160 at 132, and 320 at 264.
        expect(high).toBeLessThan(places * 1.215);
      }),
      { numRuns: 30 },
    );
  });

  it('keeps its place when every answer takes four times as long', () => {
    const { run, trace, engine } = rig({ places: 32, heldMs: 500 });
    run(1000);
    engine.heldMs *= 4;
    const before = trace.length;
    run(1000);
    const [low, high] = spread(trace.slice(before));
    expect(low).toBeGreaterThan(24);
    expect(high).toBeLessThan(40);
  });

  it('follows an engine that runs fewer together, and more again', () => {
    const { run, requests, engine } = rig({ places: 64, heldMs: 500 });
    run(1000);
    engine.places = 16;
    run(400);
    expect(requests()).toBeLessThan(20);
    engine.places = 64;
    run(600);
    expect(requests()).toBeGreaterThan(52);
  });
});

describe('first tokens that are late for a moment', () => {
  it('tell nothing, however late; those that stay late for as long as a place is held are a queue', () => {
    const { run, requests, engine } = rig({ places: 64, heldMs: 500 });
    run(1000);
    const before = requests();
    for (let pause = 0; pause < 20; pause++) {
      run(20, { excess: 250 });
      run(44);
    }
    expect(requests()).toBeGreaterThan(0.85 * before);
    engine.places = 40;
    run(400);
    expect(requests()).toBeLessThan(50);
  });
});

describe('by whole answers', () => {
  it.each([0.2, 1, 3])('finds the batch though answers take %f times longer in it', (slope) => {
    const { run, trace } = rig({ places: 48, heldMs: 300, slope, whole: true });
    run(3000);
    const settled = trace.length;
    run(3000);
    const of = trace.slice(settled);
    expect(of.reduce((a, b) => a + b) / of.length).toBeGreaterThan(40);
    expect(spread(of)[1]).toBeLessThan(48 * 1.35);
  });
});

describe('late answers', () => {
  it('bring it down to two requests, no further, and it finds its way back', () => {
    const { run, requests } = rig({ places: 32, heldMs: 500 });
    run(500);
    run(400, { share: 1.5, allowedPart: 1 });
    expect(requests()).toBeGreaterThanOrEqual(2 * 0.8);
    expect(requests()).toBeLessThan(4);
    run(1500);
    expect(requests()).toBeGreaterThan(25);
  });

  it('are forgiven where they are few', () => {
    const { limit, run } = rig({ places: 32, heldMs: 500 });
    run(500);
    const before = limit.limit;
    run(1, { share: 1.5 });
    expect(limit.limit).toBe(before);
  });
});

it('does not move while it is not binding, nor by what was sent under another limit', () => {
  const { limit, run } = rig({ places: 32, heldMs: 500 });
  run(600);
  const before = limit.limit;
  run(500, { saturated: false });
  expect(limit.limit).toBe(before);
  run(500, { sentAt: 0 });
  expect(limit.limit).toBe(before);
});

describe('what does not bind', () => {
  it('is taken back to a little above what is in use, while nothing has been found', () => {
    const { limit, run, requests, now } = rig({ places: 1000, heldMs: 500 });
    run(40);
    expect([limit.starting, requests() > 300]).toEqual([true, true]);
    const sample = { whole: false, ratio: 1, excess: 1, held: 500, share: 0.5, allowedPart: 1, unit: UNIT };
    const begin = now();
    for (let at = begin; at < begin + 60_000; at += 100) {
      const inFlight = (20 + (Math.round((at - begin) / 100) % 31)) * UNIT;
      limit.observe({ ...sample, sentAt: at, inFlight, saturated: false }, at);
    }
    expect(requests()).toBeGreaterThan(40);
    expect(requests()).toBeLessThan(60);
  });

  it('makes no leap of it when what held it down is over', () => {
    const { limit, run, trace, now } = rig({ places: 64, heldMs: 500 });
    run(600);
    // For ten seconds it is held a little below where that was.
    limit.dropped(48 * UNIT, 0.2, now());
    const before = trace.length;
    run(2500);
    const [, high] = spread(trace.slice(before));
    expect(high).toBeGreaterThan(60);
    expect(high).toBeLessThan(64 * 1.2);
  });
});

it('starts again from a few where the endpoint was gone, and gives way to what the engine says', () => {
  const { limit, run, requests } = rig({ places: 32, heldMs: 500 });
  run(600);
  limit.restart(4 * UNIT);
  expect([requests(), limit.starting]).toEqual([4, true]);
  run(600);
  expect(requests()).toBeGreaterThan(25);
  const before = limit.limit;
  limit.dropped(before, 0.3, 1e6);
  expect(limit.limit).toBeCloseTo(0.7 * before, 6);
  expect(limit.starting).toBe(false);
});
