import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { LIMIT_MAX, Pace } from './pace.ts';

const random = seededRandom(1);

/** An engine that serves `places` lines at one time, each for `ms`; gives the mean and the most that waited after a while. */
function served(places: number, ms: number): { limit: number; waiting: number } {
  const pace = new Pace();
  const flying: { at: number; waitedMs: number }[] = [];
  const free = Array.from({ length: places }, () => 0);
  let waiting = 0;
  for (let now = 0; now < ms * 400; now++) {
    for (const line of flying.filter(({ at }) => at <= now)) {
      flying.splice(flying.indexOf(line), 1);
      pace.answered(line.waitedMs, ms, now);
    }
    while (pace.hasRoom(now)) {
      pace.begin();
      const place = free.indexOf(Math.min(...free));
      const from = Math.max(now, free[place]!);
      free[place] = from + ms;
      flying.push({ at: from + ms, waitedMs: from - now });
    }
    if (now > ms * 200) waiting = Math.max(waiting, flying.length - places);
  }
  return { limit: pace.limit, waiting };
}

describe('Pace', () => {
  it('begins with few, and comes to use every place of an engine, with few that wait', () => {
    expect(new Pace().limit).toBe(4);
    for (const places of [2, 8, 20]) {
      const { limit, waiting } = served(places, 20);
      expect(limit).toBeGreaterThanOrEqual(places);
      expect(waiting).toBeLessThanOrEqual(Math.ceil(places * 0.75) + 1);
    }
    expect(served(1000, 20).limit).toBe(LIMIT_MAX);
  });

  it('comes again after the time that was told, not before', () => {
    for (const why of ['quota', 'overloaded', 'failed'] as const) {
      const pace = new Pace();
      pace.begin();
      const ms = pace.refused(why, 3000, 100, random);
      expect(ms).toBeGreaterThanOrEqual(3000);
      expect(ms).toBeLessThanOrEqual(3300);
      expect([pace.hasRoom(3099), pace.hasRoom(3401)]).toEqual([false, true]);
    }
  });

  it('asks less and less often of what goes on failing, and at once again when it does not', () => {
    const pace = new Pace();
    const pauses = Array.from({ length: 12 }, (_, i) => {
      pace.begin();
      return pace.refused('failed', undefined, i * 100_000, random);
    });
    expect(pauses[0]).toBeLessThanOrEqual(200);
    expect(pauses[11]).toBeGreaterThanOrEqual(15_000);
    expect(pauses[11]).toBeLessThanOrEqual(30_000);
    expect(pace.limit).toBe(1);
    const now = 2_000_000;
    pace.begin();
    pace.answered(0, 10, now);
    pace.begin();
    expect(pace.refused('failed', undefined, now, random)).toBeLessThanOrEqual(200);
  });

  it('holds up nobody where others have their place, and has fewer on their way', () => {
    const pace = new Pace();
    for (let i = 0; i < 4; i++) pace.begin();
    expect(pace.refused('crowded', 9000, 0, random)).toBeGreaterThanOrEqual(9000);
    expect([pace.limit, pace.pausedUntil]).toEqual([2, 0]);
    while (pace.inflight > 1) pace.left();
    expect(pace.hasRoom(1)).toBe(true);
  });

  it('goes on with others as before, where one finds in use what it goes on from', () => {
    const pace = new Pace();
    for (let i = 0; i < 4; i++) pace.begin();
    for (let i = 0; i < 4; i++) expect(pace.refused('held', undefined, 0, random)).toBe(0);
    expect([pace.limit, pace.pausedUntil, pace.inflight]).toEqual([4, 0, 0]);
  });

  it('halves once for all that were refused together', () => {
    const pace = new Pace();
    for (let i = 0; i < 4; i++) pace.begin();
    for (let i = 0; i < 4; i++) pace.refused('overloaded', 1000, 0, random);
    expect(pace.limit).toBe(2);
  });

  it('keeps to what a limit on requests at once lets through, and tries more after a while', () => {
    const pace = new Pace();
    for (let i = 0; i < 4; i++) pace.begin();
    pace.refused('slots', 1000, 0, random);
    expect(pace.limit).toBe(3);
    for (const now of [1000, 6000, 7000, 8000, 9000]) {
      pace.answered(0, 10, now);
      pace.begin();
    }
    expect(pace.limit).toBe(4);
  });

  it('never has more on their way than the bound, and always lets one go on in the end', () => {
    const step = fc.record({
      what: fc.constantFrom('begin', 'answered', 'left', 'slots', 'quota', 'overloaded', 'failed', 'held'),
      ms: fc.nat(5000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const pace = new Pace();
        let now = 0;
        for (const { what, ms } of steps) {
          now += ms;
          if (what === 'begin') {
            if (pace.hasRoom(now)) pace.begin();
          } else if (pace.inflight > 0) {
            if (what === 'answered') pace.answered(ms, 100, now);
            else if (what === 'left') pace.left();
            else pace.refused(what as 'slots', ms, now, random);
          }
          expect(pace.inflight).toBeLessThanOrEqual(LIMIT_MAX);
          expect(pace.limit).toBeGreaterThanOrEqual(1);
        }
        while (pace.inflight > 0) pace.left();
        expect(pace.hasRoom(now + 60_000)).toBe(true);
      }),
    );
  });
});
