import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { type HoldInput, judge, LadderHold } from './index.ts';

const at = (more: Partial<HoldInput> = {}): HoldInput => ({
  priority: 2,
  waiting: 0,
  used: 5,
  places: 10,
  ...more,
});
/** So many places were taken up to now by full answers, for a long time. */
function busy(hold: LadderHold, places: number, until: number): void {
  for (let now = until - 40_000; now <= until; now += 100) {
    hold.observe({ kind: 'served', ms: 100 * places, growth: 1 }, now);
  }
}

describe('the hold of a rung', () => {
  it('holds nobody before a request had to take it, and then its priority alone', () => {
    const hold = new LadderHold();
    expect([hold.holds, hold.decide(at(), 0).choice]).toEqual([false, undefined]);
    hold.observe({ kind: 'taken', priority: 2, rung: 1 }, 0);
    expect(hold.holds).toBe(true);
    expect(hold.decide(at({ used: 6 }), 10)).toEqual({
      choice: 1,
      reason: {
        code: 'rung-held',
        figures: { rung: 1, waiting: 0, used: 6, places: 10, inFull: 0, dwellLeftMs: 990 },
      },
    });
    expect(hold.decide(at({ priority: 0 }), 10).choice).toBeUndefined();
  });

  it('is left after its dwell with room for all in full, and within it only with much', () => {
    const now = 100_000;
    for (const [places, afterMs, code] of [
      [8.1, 1_000, 'rung-held'],
      [7.9, 1_000, 'rung-left'],
      [7.9, 999, 'rung-held'],
      [5.1, 0, 'rung-held'],
      [4.9, 0, 'rung-left'],
    ] as const) {
      const hold = new LadderHold();
      hold.observe({ kind: 'taken', priority: 2, rung: 0 }, now - afterMs);
      busy(hold, places * 0.988, now); // each answer counts when it is whole, a little after its middle
      expect([places, hold.decide(at({ used: 1 }), now).reason.code]).toEqual([places, code]);
      expect(hold.holds).toBe(code === 'rung-held');
    }
  });

  it('goes by what answers would take in full: as full ones were seen to, or else as they are reckoned', () => {
    const now = 40_000;
    const load = (hold: LadderHold) => {
      for (let ms = 0; ms <= now; ms += 100) hold.observe({ kind: 'served', ms: 50, growth: 6 }, ms);
      return Math.round(hold.read(at(), now).inFull);
    };
    expect(load(new LadderHold())).toBe(3); // ten a second, each of 50 ms times 6
    const seen = new LadderHold();
    seen.observe({ kind: 'served', ms: 900, growth: 1 }, 0);
    expect(load(seen)).toBe(9);
  });

  it('is held longer when it is taken again soon after it was left, up to 4 s', () => {
    const hold = new LadderHold();
    let now = 0;
    const dwells = [];
    for (let i = 0; i < 5; i++) {
      hold.observe({ kind: 'taken', priority: 0, rung: 0 }, now);
      dwells.push(hold.read(at({ priority: 0 }), now).dwellLeftMs);
      now += 60_000;
      expect(hold.decide(at({ priority: 0, used: 0 }), now).reason.code).toBe('rung-left');
      now += i === 3 ? 40_000 : 10;
    }
    expect(dwells).toEqual([1000, 2000, 4000, 4000, 1000]);
  });

  it('tries full answers where half of the places are free, later each time that it was in vain', () => {
    const hold = new LadderHold();
    let now = 0;
    const tries = [];
    for (let i = 0; i < 6; i++) {
      hold.observe({ kind: 'taken', priority: 2, rung: 0 }, now);
      const since = now;
      for (; hold.holds; now += 500) {
        busy(hold, 12, now);
        expect(hold.decide(at({ used: 6 }), now).choice).toBe(0);
        const { choice, reason } = hold.decide(at({ used: 5 }), now);
        if (choice === undefined) expect(reason.code).toBe('full-tried');
      }
      tries.push(now - 500 - since);
    }
    expect(tries).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it('is never left while somebody waits, or where there are no places at all', () => {
    const hold = new LadderHold();
    hold.observe({ kind: 'taken', priority: 2, rung: 0 }, 0);
    expect(hold.decide(at({ used: 0, waiting: 1 }), 90_000).choice).toBe(0);
    expect(hold.decide(at({ used: 0, places: 0 }), 90_000).choice).toBe(0);
  });

  it('goes to the deeper of two rungs, and decides the same on what it read', () => {
    const hold = new LadderHold();
    hold.observe({ kind: 'taken', priority: 1, rung: 2 }, 0);
    hold.observe({ kind: 'taken', priority: 1, rung: 1 }, 500);
    const input = at({ priority: 1, used: 9 });
    const read = JSON.parse(JSON.stringify(hold.read(input, 700)));
    expect(judge(read)).toEqual(hold.decide(input, 700));
    expect(judge(read).choice).toBe(2);
  });

  it('at a load on the edge changes at most once in fifteen seconds, where requests decided one by one change all the time', () => {
    for (const load of [0.95, 1.0, 1.05, 1.2, 1.5]) {
      const held = simulate({ load, growth: 4, seconds: 600, hold: new LadderHold() });
      const bare = simulate({ load, growth: 4, seconds: 600, hold: undefined });
      expect([load, held.changes <= 40]).toEqual([load, true]);
      if (load >= 1.05) {
        expect(held.changes).toBeGreaterThanOrEqual(1);
        expect(bare.changes).toBeGreaterThan(10 * held.changes);
      }
    }
  });

  it('climbs back within five seconds when the load is gone', () => {
    const hold = new LadderHold();
    const spike = simulate({ load: 3, growth: 4, seconds: 60, hold });
    expect(spike.at).toBe('rung');
    const calm = simulate({ load: 0.5, growth: 4, seconds: 5, hold, from: spike });
    expect([calm.at, calm.changes]).toEqual(['full', 1]);
  });

  it('is never left while somebody waits, nor within its dwell save with half of the places free', () => {
    const event = fc.record({
      afterMs: fc.nat(400),
      taken: fc.boolean(),
      used: fc.integer({ min: 0, max: 12 }),
      waiting: fc.nat(2),
      servedMs: fc.option(fc.nat(2_000)),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const hold = new LadderHold();
        let now = 0;
        let last = Number.NEGATIVE_INFINITY;
        for (const { afterMs, taken, used, waiting, servedMs } of events) {
          now += afterMs;
          if (servedMs !== null) hold.observe({ kind: 'served', ms: servedMs, growth: 1 }, now);
          if (taken) {
            hold.observe({ kind: 'taken', priority: 0, rung: 0 }, now);
            last = now;
          }
          const before = hold.holds;
          const { choice, reason } = hold.decide({ priority: 0, waiting, used, places: 12 }, now);
          expect(hold.holds).toBe(choice !== undefined);
          if (!before || choice !== undefined) continue;
          const most = now - last < 1000 ? 6 : 9.6;
          const fits =
            Number(reason.figures['inFull']) <= most || (reason.code === 'full-tried' && used <= 6);
          expect([waiting, used <= most, fits]).toEqual([0, true, true]);
        }
      }),
    );
  });
});

interface State {
  /** Moments at which those that are served are done. */
  done: { at: number; ms: number }[];
  queue: number;
  now: number;
  at: 'full' | 'rung';
  changes: number;
}

/** Twenty places; a full answer takes 2 s, one of the rung less by `growth`; who would wait for 1 s or more takes the rung. */
function simulate(of: {
  load: number;
  growth: number;
  seconds: number;
  hold: LadderHold | undefined;
  from?: State;
}): State {
  const places = 20;
  const fullMs = 2_000;
  const random = seededRandom(7);
  const state: State = {
    done: of.from?.done ?? [],
    queue: 0,
    now: of.from?.now ?? 0,
    at: of.from?.at ?? 'full',
    changes: 0,
  };
  const end = state.now + of.seconds * 1000;
  let queue: number[] = [];
  const serve = (ms: number) => state.done.push({ at: state.now + ms, ms });
  while (state.now < end) {
    const next = state.now + (-Math.log(1 - random.next()) * fullMs) / places / of.load;
    // Those who wait follow on as places come free.
    for (;;) {
      const first = state.done.reduce((a, b) => (b.at < a.at ? b : a), { at: Infinity, ms: 0 });
      if (first.at > next) break;
      state.now = first.at;
      state.done.splice(state.done.indexOf(first), 1);
      of.hold?.observe(
        { kind: 'served', ms: first.ms, growth: first.ms === fullMs ? 1 : of.growth },
        state.now,
      );
      if (queue.length > 0) serve(queue.shift()!);
    }
    state.now = next;
    const usual = state.at === 'full' ? fullMs : fullMs / of.growth;
    const waitMs = state.done.length < places ? 0 : ((queue.length + 1) * usual) / places;
    const input = { priority: 0, waiting: queue.length, used: state.done.length, places };
    let rung = of.hold?.decide(input, state.now).choice !== undefined;
    if (!rung && waitMs >= 1_000) {
      rung = true;
      of.hold?.observe({ kind: 'taken', priority: 0, rung: 0 }, state.now);
    }
    if ((rung ? 'rung' : 'full') !== state.at) {
      state.at = rung ? 'rung' : 'full';
      state.changes++;
    }
    const ms = rung ? fullMs / of.growth : fullMs;
    if (state.done.length < places) serve(ms);
    else queue = [...queue.slice(0, 200), ms];
  }
  return state;
}
