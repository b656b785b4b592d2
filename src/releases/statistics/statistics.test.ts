import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { AssignmentTest } from './assignment-test.ts';
import { rho } from './confidence.ts';
import { logMean } from './log-mean.ts';
import { PairedTest } from './paired-test.ts';
import { rateAbove, rateBelow } from './rate-test.ts';
import { RatioTest } from './ratio-test.ts';

const SEQUENCE = [1, 0, 0, 1, 0, 1, 0, 0, 1, 0];

describe('RatioTest', () => {
  it('gives the likelihoods of the vectors (A1)', () => {
    const test = new RatioTest([4]);
    for (const z of SEQUENCE) test.add(z === 1, 0.1);
    expect(Math.exp(test.likelihood(2))).toBeCloseTo(6.1686926309, 9);
    expect(Math.exp(test.likelihood(4))).toBeCloseTo(18.5697664733, 9);
    const mean = logMean([1.5, 2, 4, 8].map((ratio) => test.likelihood(ratio)));
    expect(Math.exp(mean)).toBeCloseTo(12.040979185, 9);
  });

  it('gives the certificate of the vector (A2)', () => {
    const test = new RatioTest([2]);
    for (const z of [1, 0, 0, 1, 0, 0, 1, 0, 0, 0]) test.add(z === 1, 0.5);
    expect(Math.exp(test.likelihood(1) - test.likelihood(2))).toBeCloseTo(7.2081298828, 9);
  });

  it('says nothing of nothing', () => {
    const test = new RatioTest([2]);
    expect(test.harm()).toBe(0);
    expect(test.harmless(2)).toBeCloseTo(0, 12);
  });

  it('stays finite however much there is', () => {
    const test = new RatioTest([2]);
    for (let i = 0; i < 100_000; i++) test.add(true, 0.01);
    expect(test.harm()).toBeGreaterThan(100_000);
    expect(Number.isFinite(test.harm())).toBe(true);
    expect(Number.isFinite(test.harmless(2))).toBe(true);
    expect(test.harmless(2)).toBeLessThan(-10_000);
  });

  it('goes on from its state as if nothing had been between', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), fc.double({ min: 0.01, max: 0.99, noNaN: true })), { minLength: 2 }),
        (marks) => {
          const whole = new RatioTest([2]);
          let kept = new RatioTest([2]);
          for (const [inCanary, share] of marks) {
            whole.add(inCanary, share);
            kept = new RatioTest([2], JSON.parse(JSON.stringify(kept)));
            kept.add(inCanary, share);
          }
          expect(kept.harm()).toBe(whole.harm());
          expect(kept.harmless(2)).toBe(whole.harmless(2));
        },
      ),
    );
  });

  /** The mean of an e-value over what is alike is 1: exactly so over all outcomes of a few trials. */
  it.each([
    [1, (test: RatioTest) => test.harm()],
    [2, (test: RatioTest) => test.harmless(2)],
  ])('is 1 on average where the ratio is %d, whatever the shares', (ratio, of) => {
    const shares = [0.01, 0.05, 0.25, 0.5, 0.1, 0.9];
    let mean = 0;
    for (let outcome = 0; outcome < 2 ** shares.length; outcome++) {
      const test = new RatioTest([2]);
      let chance = 1;
      shares.forEach((share, i) => {
        const inCanary = (outcome >> i) % 2 === 1;
        const p = (ratio * share) / (ratio * share + 1 - share);
        chance *= inCanary ? p : 1 - p;
        test.add(inCanary, share);
      });
      mean += chance * Math.exp(of(test));
    }
    expect(mean).toBeCloseTo(1, 9);
  });
});

describe('The bet on a rate', () => {
  it.each([rateBelow, rateAbove])('is 1 on average at the bound (%o)', (bet) => {
    const all = 12;
    let mean = 0;
    for (let outcome = 0; outcome < 2 ** all; outcome++) {
      const marked = outcome.toString(2).replaceAll('0', '').length;
      mean += 0.1 ** marked * 0.9 ** (all - marked) * Math.exp(bet(0.1, marked, all));
    }
    expect(mean).toBeCloseTo(1, 9);
  });

  it('certifies a bound of 1 % after as many sessions without a failure as the reference says (C2)', () => {
    let sessions = 1;
    while (rateBelow(0.01, 0, sessions) < Math.log(20)) sessions++;
    expect(sessions).toBeGreaterThan(360);
    expect(sessions).toBeLessThan(390); // 376, with ~0 for the lowest of the rates
  });

  it('looks for a rate above a bound that is nearly 1', () => {
    expect(rateAbove(0.9, 100, 100)).toBeGreaterThan(0);
    expect(rateAbove(0.9, 50, 100)).toBeLessThan(0);
  });
});

describe('AssignmentTest', () => {
  it('finds sessions that do not fall by the share, and is still of those that do', () => {
    const random = seededRandom(7);
    const fair = new AssignmentTest();
    const skewed = new AssignmentTest();
    let most = 0;
    for (let i = 0; i < 20_000; i++) {
      const share = i % 2 === 0 ? 0.5 : 0.3;
      fair.add(random.next() < share, share);
      skewed.add(random.next() < share * 1.1, share);
      most = Math.max(most, fair.skewed());
    }
    expect(most).toBeLessThan(Math.log(1000));
    expect(skewed.skewed()).toBeGreaterThan(Math.log(1000));
  });
});

describe('PairedTest', () => {
  it('finds answers that are worse, and certifies those that are as good', () => {
    const random = seededRandom(3);
    const equal = new PairedTest(0.05);
    const worse = new PairedTest(0.05);
    for (let i = 0; i < 2000; i++) {
      const noise = random.next() - 0.5;
      equal.add(noise);
      worse.add(noise * 0.6 + 0.15);
    }
    expect(equal.harmless()).toBeGreaterThan(Math.log(20));
    expect(equal.harm()).toBeLessThan(0);
    expect(worse.harm()).toBeGreaterThan(Math.log(50));
    expect(worse.harmless()).toBeLessThan(0);
  });

  it('never leaves the numbers', () => {
    const test = new PairedTest(0.5);
    for (let i = 0; i < 10_000; i++) test.add(i % 2 === 0 ? 1 : -1);
    for (let i = 0; i < 10_000; i++) test.add(-1);
    expect(Number.isFinite(test.harm()) && Number.isFinite(test.harmless())).toBe(true);
  });
});

it('rho is what the vectors say', () => {
  expect(rho(100)).toBeCloseTo(0.266721, 6);
  expect(rho(1000)).toBeCloseTo(0.085806, 6);
  expect(rho(10_000)).toBeCloseTo(0.027472, 6);
  expect(rho(100_000)).toBeCloseTo(0.008772, 6);
});

it('logMean knows weights, and numbers that are none', () => {
  expect(Math.exp(logMean([Math.log(2), Math.log(6)], [3, 1]))).toBeCloseTo(3, 12);
  expect(logMean([Number.NEGATIVE_INFINITY])).toBe(Number.NEGATIVE_INFINITY);
  expect(logMean([5000, 1])).toBeCloseTo(5000 - Math.log(2), 9);
});
