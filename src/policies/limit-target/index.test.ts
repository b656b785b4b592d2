import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import type { LimitSample } from '../limit-contract.ts';
import { TargetLimit } from './index.ts';

const UNIT = 100;

/** An engine that runs `places` requests together, each for `heldMs`; its first tokens take `firstMs` and their wait. */
function rig(engine: { places: number; heldMs: number; firstMs: number; targetMs: number }) {
  const limit = new TargetLimit();
  const random = seededRandom(7);
  let now = 0;
  const trace: number[] = [];
  const run = (answers: number, more: Partial<LimitSample> = {}) => {
    for (let i = 0; i < answers; i++) {
      const { places, heldMs, firstMs, targetMs } = engine;
      const n = limit.starting ? Math.max(20, limit.limit / UNIT) : Math.max(1, limit.limit / UNIT);
      const waitMs = (Math.max(0, n - places) / places) * heldMs;
      const latency = (firstMs + waitMs) * (0.9 + 0.2 * random.next());
      now += heldMs / Math.min(n, places);
      limit.observe(
        {
          sentAt: now,
          whole: false,
          ratio: 1,
          excess: 0,
          held: heldMs + waitMs,
          share: latency / targetMs,
          allowedPart: targetMs / (heldMs + waitMs),
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
  /** What keeps 95 % within the target. */
  const best = () => {
    const { places, heldMs, firstMs, targetMs } = engine;
    return places * (1 + (targetMs / 1.09 - firstMs) / heldMs);
  };
  return { limit, run, trace, requests: () => limit.limit / UNIT, best, engine };
}

it('finds the most that keeps the target, and stays near it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 200 }),
      fc.integer({ min: 200, max: 5000 }),
      fc.integer({ min: 20, max: 100 }),
      fc.integer({ min: 200, max: 1000 }),
      (places, heldMs, firstMs, targetMs) => {
        const { run, trace, best } = rig({ places, heldMs, firstMs, targetMs });
        run(1500);
        const settled = trace.length;
        run(1500);
        for (const requests of trace.slice(settled)) {
          expect(requests).toBeGreaterThan(best() * 0.8);
          expect(requests).toBeLessThan(best() * 1.1);
        }
      },
    ),
    { numRuns: 50 },
  );
});

it('follows an engine that turns four times slower, and one that is quick again', () => {
  const { run, requests, best, engine } = rig({ places: 64, heldMs: 200, firstMs: 20, targetMs: 300 });
  run(1500);
  engine.heldMs *= 4;
  engine.firstMs *= 4;
  run(200);
  expect(requests()).toBeLessThan(best() * 1.1);
  expect(requests()).toBeGreaterThan(best() * 0.8);
  engine.heldMs /= 4;
  engine.firstMs /= 4;
  run(1500);
  expect(requests()).toBeGreaterThan(best() * 0.85);
});

describe('it does not move', () => {
  it('by answers that were not held up by it, however quick', () => {
    const { limit, run } = rig({ places: 32, heldMs: 500, firstMs: 20, targetMs: 300 });
    run(1000);
    const before = limit.limit;
    run(500, { saturated: false, share: 0.1 });
    expect(limit.limit).toBe(before);
  });

  it('by answers that were sent under another limit', () => {
    const { limit, run } = rig({ places: 32, heldMs: 500, firstMs: 20, targetMs: 300 });
    run(1000);
    limit.dropped(limit.limit, 0.1, 1e6);
    const before = limit.limit;
    run(100, { sentAt: 0, share: 5 });
    expect(limit.limit).toBe(before);
  });
});

it('starts again from a few where the endpoint was gone, and gives way to what the engine says', () => {
  const { limit, run, requests } = rig({ places: 32, heldMs: 500, firstMs: 20, targetMs: 300 });
  run(1000);
  limit.restart(4 * UNIT);
  expect([requests(), limit.starting]).toEqual([4, true]);
  const before = limit.limit;
  limit.dropped(before, 0.3, 0);
  expect(limit.limit).toBeCloseTo(0.7 * before, 6);
});
