import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayBucket, TokenBucket } from './index.ts';

const fiveASecond = { perSecond: 5, burst: 5 };
const aThousandASecond = { perSecond: 1000, burst: 60_000 };

describe('a token bucket', () => {
  it('is full at first, and fills again with time up to its burst', () => {
    const bucket = new TokenBucket(fiveASecond, 0);
    const take = (now: number) => {
      let taken = 0;
      while (bucket.decide({ asked: 1 }, now).choice) taken++;
      return taken;
    };
    expect([take(0), take(100), take(200), take(1_000), take(60_000)]).toEqual([5, 0, 1, 4, 5]);
  });

  it('says when what is asked for will be there, and it is there then and not before', () => {
    const bucket = new TokenBucket(aThousandASecond, 0);
    expect(bucket.decide({ asked: 40_000 }, 0).choice).toBe(true);
    expect(bucket.decide({ asked: 40_000 }, 0)).toEqual({
      choice: false,
      reason: {
        code: 'quota-short',
        figures: { asked: 40_000, there: 20_000, max: 60_000, perSecond: 1000, retryAfterMs: 20_000 },
      },
    });
    expect(bucket.decide({ asked: 40_000 }, 19_999).choice).toBe(false);
    expect(bucket.decide({ asked: 40_000 }, 20_000).choice).toBe(true);
  });

  it('promises nothing for more than it can ever hold', () => {
    const bucket = new TokenBucket(aThousandASecond, 0);
    expect(bucket.waitMs(60_001, 0)).toBe(Number.POSITIVE_INFINITY);
    expect(bucket.decide({ asked: 60_001 }, 0).reason).toEqual({
      code: 'quota-never',
      figures: { asked: 60_001, there: 60_000, max: 60_000 },
    });
    expect(new TokenBucket({ perSecond: 0, burst: 0 }, 0).decide({ asked: 1 }, 1e9).reason.code).toBe(
      'quota-never',
    );
  });

  it('takes back what was not used, never above its burst', () => {
    const bucket = new TokenBucket(aThousandASecond, 0);
    bucket.decide({ asked: 40_000 }, 0);
    bucket.observe({ used: -39_993 }, 0);
    expect(bucket.level(0)).toBe(59_993);
    bucket.observe({ used: -39_993 }, 0);
    expect(bucket.level(0)).toBe(60_000);
  });

  it('goes into debt for what was used beyond what was taken; what follows waits for it', () => {
    const bucket = new TokenBucket(aThousandASecond, 0);
    bucket.observe({ used: 70_000 }, 0);
    expect([bucket.level(0), bucket.waitMs(1, 0), bucket.fullMs(0)]).toEqual([-10_000, 10_001, 70_000]);
  });

  it('is never so deep in debt that one wrong figure would shut it for good', () => {
    const bucket = new TokenBucket(aThousandASecond, 0);
    bucket.observe({ used: Number.MAX_SAFE_INTEGER }, 0);
    expect(bucket.level(0)).toBe(-3_600_000);
    const slow = new TokenBucket({ perSecond: 1 / 86_400, burst: 1 }, 0);
    slow.observe({ used: Number.MAX_SAFE_INTEGER }, 0);
    expect(slow.level(0)).toBe(-10);
  });

  it('keeps its share when the limit changes, and its debt as it is', () => {
    const bucket = new TokenBucket(fiveASecond, 0);
    for (let i = 0; i < 4; i++) bucket.decide({ asked: 1 }, 0);
    bucket.resize({ perSecond: 100, burst: 100 }, 0);
    expect(bucket.level(0)).toBe(20);
    bucket.observe({ used: 50 }, 0);
    bucket.resize(fiveASecond, 0);
    expect([bucket.level(0), bucket.level(7_000)]).toEqual([-30, 5]);
    bucket.resize({ perSecond: 0, burst: 0 }, 7_000);
    bucket.resize(fiveASecond, 7_000);
    expect([bucket.level(7_000), bucket.level(7_200)]).toEqual([0, 1]);
  });

  it('decides again on what it read', () => {
    const bucket = new TokenBucket({ perSecond: 1 / 3, burst: 7.5 }, 0);
    bucket.decide({ asked: 7 }, 0);
    const read = bucket.read(2.2, 1234.5);
    expect(replayBucket(read)).toEqual(bucket.decide({ asked: 2.2 }, 1234.5));
  });

  it('over any sequence grants no more than its burst and what time brought, and waits as long as it said', () => {
    const size = fc.record({
      perSecond: fc.constantFrom(0.5, 1 / 60, 5, 1000),
      burst: fc.constantFrom(1, 5, 60_000),
    });
    const event = fc.oneof(
      fc.record({ do: fc.constant('ask' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ do: fc.constant('return' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.double({ min: 0, max: 5_000, noNaN: true }) }),
    );
    fc.assert(
      fc.property(size, fc.array(event, { maxLength: 200 }), (of, events) => {
        const bucket = new TokenBucket(of, 0);
        let [now, used, last] = [0, 0, 0];
        for (const each of events) {
          if (each.do === 'wait') now += each.ms;
          else if (each.do === 'return') {
            bucket.observe({ used: -last * each.share }, now);
            used -= last * each.share;
            last = 0;
          } else {
            const asked = each.share * of.burst;
            const waitMs = bucket.waitMs(asked, now);
            expect(bucket.decide({ asked }, now).choice).toBe(waitMs === 0);
            if (waitMs > 0) {
              now += waitMs;
              expect(bucket.decide({ asked }, now).choice).toBe(true);
            }
            used += asked;
            last = asked;
          }
          expect(used).toBeLessThanOrEqual(of.burst + (of.perSecond * now) / 1000 + 1e-3);
          expect(bucket.level(now)).toBeLessThanOrEqual(of.burst);
        }
      }),
      { numRuns: 300 },
    );
  });
});
