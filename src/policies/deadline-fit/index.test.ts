import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { floorsOf } from '../priority-floors/index.ts';
import { type Ahead, DrainRate, deadlineFit, retryAfterSeconds, ServiceTimes } from './index.ts';

const floors = floorsOf([0, 0.1, 0.05, 0.02]);
const random = seededRandom(1);

function ahead(more: Partial<Ahead> = {}): Ahead {
  return { rank: 1, above: 0, own: 0, places: 4, floors, waits: (rank) => rank === 1, ...more };
}

/** A backend whose places are all taken: one attempt after the other ends, `everyMs` apart. */
function busy(
  drain: DrainRate,
  from: number,
  forMs: number,
  everyMs: number,
  heldMs: number,
  work = 100,
): number {
  for (let now = from; now < from + forMs; now += everyMs) drain.finished(1, work, heldMs, now);
  return from + forMs;
}

describe('the rate at which a backend works off what waits', () => {
  it('is not known before anything was finished, and nobody is made to wait by it', () => {
    const drain = new DrainRate(4);
    expect(drain.tokensPerMs(4, 0)).toBe(undefined);
    expect(drain.waitMs(ahead({ own: 1e9 }), 10)).toBe(0);
  });

  it('comes from the time that places are held, before anybody has waited', () => {
    const drain = new DrainRate(4);
    const now = busy(drain, 0, 10_000, 250, 1_000);
    expect(drain.tokensPerMs(4, now)).toBeCloseTo(0.4);
    expect(drain.tokensPerMs(8, now)).toBeCloseTo(0.8);
    expect(drain.waitMs(ahead({ own: 700 }), now)).toBeCloseTo(2_000, -1);
  });

  it('waits for the first of what is larger than all before it to come to its end', () => {
    const drain = new DrainRate(4);
    const now = busy(drain, 0, 2_000, 200, 200, 10);
    drain.contested(now, true);
    // Two that take fifteen times as long hold both places: 0.7 s later neither can have ended.
    const running = { places: 2, running: 300 };
    expect(drain.waitMs(ahead({ own: 0, places: 2 }), now + 700)).toBeGreaterThan(60_000);
    expect(drain.waitMs(ahead({ own: 0, ...running }), now + 700)).toBeLessThan(3_000);
    expect(drain.waitMs(ahead({ own: 0, ...running }), now + 30_000)).toBeGreaterThan(10_000);
  });

  it('is what is finished while others wait, whatever the places are said to be', () => {
    const drain = new DrainRate(4);
    drain.contested(0, true);
    const now = busy(drain, 0, 20_000, 250, 1_000);
    const ratio = drain.tokensPerMs(40, now)! / 0.4;
    expect(ratio).toBeGreaterThan(0.9);
    expect(ratio).toBeLessThan(1.1);
  });

  it('follows an endpoint that turns four times slower within seconds, before its slow answers are there', () => {
    const drain = new DrainRate(4);
    drain.contested(0, true);
    let now = busy(drain, 0, 20_000, 50, 200);
    const before = drain.tokensPerMs(4, now)!;
    now = busy(drain, now + 150, 5_000, 200, 800);
    const after = drain.tokensPerMs(4, now)!;
    expect(after / before).toBeLessThan(0.3);
    expect(after / before).toBeGreaterThan(0.22);
  });

  it('falls to nothing while an engine stands still, and is back as soon as it goes on', () => {
    const drain = new DrainRate(4);
    drain.contested(0, true);
    let now = busy(drain, 0, 20_000, 50, 200);
    now += 10_000;
    expect(drain.waitMs(ahead({ own: 100 }), now)).toBeGreaterThan(10_000);
    now = busy(drain, now, 4_000, 50, 200);
    expect(drain.tokensPerMs(4, now)).toBeGreaterThan(1.5);
  });

  it('does not count the time in which nothing could be finished, such as a start', () => {
    const drain = new DrainRate(4);
    let now = busy(drain, 0, 5_000, 50, 200);
    drain.contested(now, true);
    drain.pause();
    now += 10_000;
    drain.contested(now, true);
    now = busy(drain, now, 1_000, 50, 200);
    expect(drain.tokensPerMs(4, now)).toBeGreaterThan(1.8);
  });

  it('forgets what was measured long ago: then the places say it again', () => {
    const drain = new DrainRate(4);
    drain.contested(0, true);
    let now = busy(drain, 0, 5_000, 1_000, 200);
    drain.contested(now, false);
    now += 60_000;
    expect(drain.tokensPerMs(4, now)).toBeCloseTo((4 * 100) / 200);
  });

  it('is shared with those who come in above, and bounded by the floor', () => {
    const drain = new DrainRate(4);
    drain.contested(0, true);
    for (let now = 0; now < 20_000; now += 100) drain.finished(now % 1000 < 900 ? 0 : 3, 100, 400, now);
    // 1 token a millisecond in all; 0.9 of them have gone to `critical` lately.
    const batch = drain.waitMs(ahead({ rank: 3, own: 0, above: 0 }), 20_000);
    expect(batch).toBeGreaterThan(600);
    expect(batch).toBeLessThan(1_600);
    expect(drain.waitMs(ahead({ rank: 0, own: 0 }), 20_000)).toBeLessThan(140);
    const behind = drain.waitMs(ahead({ rank: 3, own: 0, above: 1e9 }), 20_000);
    expect(behind).toBeLessThanOrEqual(100 / 0.02 / 0.8);
  });

  it('predicts the wait of a queue of a random kind within a third, in the mean', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 20, max: 2000 }),
        (seed, places, heldMs) => {
          const draws = seededRandom(seed);
          const drain = new DrainRate(4);
          const free = new Array<number>(places).fill(0);
          drain.contested(0, true);
          // Each place takes the next as soon as it is free: a line that never ends.
          let ratio = 0;
          let count = 0;
          const finished: number[] = [];
          for (let served = 0; served < 400; served++) {
            const at = free.indexOf(Math.min(...free));
            const tookMs = heldMs * (0.5 + draws.next());
            finished.push(free[at]! + tookMs);
            free[at]! += tookMs;
          }
          finished.sort((a, b) => a - b);
          finished.slice(0, 300).forEach((now, index) => {
            drain.finished(1, 100, heldMs, now);
            if (index < 100 || index % 10 > 0) return;
            const really = finished[index + 50]! - now;
            ratio += drain.waitMs(ahead({ own: 4_900, places }), now) / really;
            count++;
          });
          expect(ratio / count).toBeGreaterThan(0.67);
          expect(ratio / count).toBeLessThan(1.5);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('the time that an answer takes', () => {
  it('takes no more for a size below all that are known than for the smallest of them', () => {
    const times = new ServiceTimes();
    for (let i = 0; i < 20; i++) {
      times.observe('chat', 64, 400, i * 100);
      times.observe('chat', 1024, 4_000, i * 100);
    }
    expect(times.expected('chat', 8, 2_000).levelMs).toBeCloseTo(400);
    expect(times.expected('chat', 4096, 2_000).levelMs).toBeCloseTo(4_000);
  });

  it('is none where nothing is known, or nothing was seen for long', () => {
    const times = new ServiceTimes();
    expect(times.expected('chat', 100, 0)).toEqual({ levelMs: 0, spreadMs: 0, safeMs: 0 });
    times.observe('chat', 100, 500, 0);
    expect(times.expected('chat', 100, 29_000).levelMs).toBe(500);
    expect(times.expected('chat', 100, 31_000).levelMs).toBe(0);
    expect(times.expected('embeddings', 100, 1_000).levelMs).toBe(0);
  });

  it('is told apart by size, once there is enough of one', () => {
    const times = new ServiceTimes();
    for (let i = 0; i < 30; i++) times.observe('chat', 10, 100, i);
    times.observe('chat', 5_000, 4_000, 30);
    expect(times.expected('chat', 5_000, 31).levelMs).toBeLessThan(1_000);
    for (let i = 0; i < 3; i++) times.observe('chat', 5_000, 4_000, 31);
    expect(times.expected('chat', 5_000, 32).levelMs).toBe(4_000);
    expect(times.expected('chat', 12, 32).levelMs).toBe(100);
  });

  it('covers all but the rarest answers of a spread kind by what is safe', () => {
    const times = new ServiceTimes();
    const draws = seededRandom(7);
    let covered = 0;
    for (let i = 0; i < 3_000; i++) {
      // Long-tailed: a mean of 400, a hundredth above 1,500.
      const ms = 100 - 300 * Math.log(1 - draws.next());
      const { safeMs } = times.expected('chat', 10, i);
      if (i >= 1_000 && ms <= safeMs) covered++;
      times.observe('chat', 10, ms, i);
    }
    expect(covered / 2_000).toBeGreaterThan(0.95);
  });

  it('is what broken-off answers took at least, where that is more than was expected', () => {
    const times = new ServiceTimes();
    for (let i = 0; i < 20; i++) times.observe('chat', 10, 100, i);
    times.atLeast('chat', 10, 50, 20);
    expect(times.expected('chat', 10, 21).levelMs).toBe(100);
    for (let i = 0; i < 5; i++) times.atLeast('chat', 10, 2_000, 21);
    expect(times.expected('chat', 10, 22).levelMs).toBeGreaterThan(1_000);
  });

  it('is no less for a larger size of which nothing is known', () => {
    const times = new ServiceTimes();
    for (let i = 0; i < 100; i++) times.observe('chat', 10, 100, i);
    for (let i = 0; i < 3; i++) times.observe('chat', 500, 3_000, 100);
    expect(times.expected('chat', 4_000, 101).levelMs).toBe(3_000);
    expect(times.expected('chat', 100, 101).levelMs).toBeLessThan(3_000);
  });

  it('follows an engine that turns slower sooner than one that turns faster', () => {
    const times = new ServiceTimes();
    for (let i = 0; i < 50; i++) times.observe('chat', 10, 100, i);
    for (let i = 0; i < 8; i++) times.observe('chat', 10, 400, 50 + i);
    expect(times.expected('chat', 10, 60).levelMs).toBeGreaterThan(300);
    for (let i = 0; i < 8; i++) times.observe('chat', 10, 100, 60 + i);
    expect(times.expected('chat', 10, 70).levelMs).toBeGreaterThan(200);
  });
});

describe('whether it fits', () => {
  const decide = (waitMs: number, serviceMs: number, leftMs: number) =>
    deadlineFit.decide({ waitMs, serviceMs, leftMs, deadlineMs: 2_000 }, 0, random);

  it('is whether waiting and service end by the deadline', () => {
    expect(decide(1_000, 900, 2_000)).toEqual({
      choice: { fits: true, againMs: 0 },
      reason: { code: 'fits', figures: { leftMs: 2_000, waitMs: 1_000, serviceMs: 900 } },
    });
    expect(decide(1_000, 1_100, 2_000).choice.fits).toBe(false);
  });

  it('says when one like it would fit: when so much has been worked off, within bounds', () => {
    expect(decide(9_000, 1_000, 1_500).choice.againMs).toBe(8_000);
    expect(decide(2_000, 100, 2_000).choice.againMs).toBe(1_000);
    expect(decide(Number.POSITIVE_INFINITY, 100, 2_000).choice.againMs).toBe(60_000);
  });

  it('is told in whole seconds, spread upwards and never down', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1_000, max: 60_000, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (ms, draw) => {
          const seconds = retryAfterSeconds(ms, draw);
          expect(Number.isInteger(seconds)).toBe(true);
          expect(seconds).toBeGreaterThanOrEqual(ms / 1000);
          expect(seconds).toBeLessThanOrEqual((ms / 1000) * 1.5 + 2);
        },
      ),
    );
  });
});
